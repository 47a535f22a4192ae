#include "client/options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "client/connection.hpp"
#include "enforcer/text.hpp"

namespace x0x::client {

namespace {

constexpr std::string_view kHelp = R"(x0x-exec: run a command that a node's policy allows

usage: x0x-exec [options] -- COMMAND [ARGUMENT ...]
       x0x-exec sessions    [--socket PATH] [--format json|human]
       x0x-exec cancel ID
       x0x-exec diagnostics [--socket PATH] [--format json|human]

Everything after -- goes to the enforcer token by token. There is no shell: quote for
your own shell only. The command's stdout and stderr come back as they are.

options
  --agent HEX        who asks: the agent's id, 64 hex digits
  --machine HEX      from where: the machine's id, 64 hex digits
  --socket PATH      the enforcer's socket (default /run/x0x/enforcer.sock)
  --timeout SECS     kill the command after this long (default: the rule's cap)
  --stdin-file FILE  the command's input; - reads it from here (at most 2 MiB in all)
  --json             print one JSON object at the end instead of the streams
  -h, --help         this text
  --version          name and version

Write agent, machine and socket once into ~/.config/x0x/exec.toml and leave them out:

  agent   = "3fa1...64 hex digits"
  machine = "90be...64 hex digits"
  socket  = "/run/x0x/enforcer.sock"

An option wins over X0X_SOCKET, that over the file, the file over the default.

examples
  x0x-exec -- systemctl status x0xd
  x0x-exec --timeout 30 -- journalctl -u x0xd -n 100 | less
  x0x-exec --stdin-file payload.bin -- some-tool --consume-stdin
  x0x-exec --json -- uptime | jq -r .stdout_b64 | base64 -d
  x0x-exec diagnostics

Ctrl-C cancels the command and waits for its end; a second Ctrl-C leaves at once.

exit status
  the command's own code
  128+n  signal n ended the command
  255    denied, enforcer not reached or lost, time was up; one line on stderr says which
)";

constexpr double kMaxTimeoutSecs = 4294967.0;  // what 32 bits of milliseconds hold

std::uint32_t timeout_ms(double seconds) {
  if (!(seconds > 0) || seconds > kMaxTimeoutSecs)
    throw Failure(fmt::format("`--timeout` must be more than 0 and at most {} seconds", kMaxTimeoutSecs));
  return std::max(1u, static_cast<std::uint32_t>(std::lround(seconds * 1000)));
}

void check_argv(const std::vector<std::string>& argv) {
  if (argv.empty()) throw Failure("no command: write it after `--`, as in `x0x-exec -- uptime`");
  for (std::size_t i = 0; i < argv.size(); ++i)
    if (!is_utf8(as_bytes(argv[i])))
      throw Failure(fmt::format("token {} of the command is not UTF-8: `{}`", i, argv[i]));
}

void refuse_leftovers(const CLI::App& app, bool takes_command) {
  const std::vector<std::string> rest = app.remaining();
  if (rest.empty()) return;
  const std::string& first = rest.front();
  if (first.starts_with('-')) throw Failure(fmt::format("unknown option `{}` (see `x0x-exec --help`)", first));
  if (!takes_command) throw Failure(fmt::format("unexpected argument `{}` (see `x0x-exec --help`)", first));
  if (first == "sessions" || first == "cancel" || first == "diagnostics")
    throw Failure(
        fmt::format("`{0}` must be the first argument: `x0x-exec {0} ...` (to run a command of that name, "
                    "put `--` before it)",
                    first));
  throw Failure(fmt::format("`{0}` stands before `--` (write `x0x-exec ... -- {0} ...`)", first));
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw Failure(fmt::format("{} (see `x0x-exec --help`)", error.what()));
  }
}

Options parse_run(const std::vector<std::string>& own, std::vector<std::string> command) {
  Options options;
  options.argv = std::move(command);
  bool help = false, version = false;
  double seconds = 0;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.add_option("--agent", options.settings.agent);
  app.add_option("--machine", options.settings.machine);
  app.add_option("--socket", options.settings.socket);
  const CLI::Option* const timeout = app.add_option("--timeout", seconds);
  const CLI::Option* const stdin_file = app.add_option("--stdin-file", options.stdin_file);
  app.add_flag("--json", options.json);
  parse(app, own);
  if (help || version) {
    options.action = help ? Action::help : Action::version;
    return options;
  }
  refuse_leftovers(app, true);
  if (timeout->count() > 0) options.timeout_ms = timeout_ms(seconds);
  if (stdin_file->count() > 0 && options.stdin_file.empty()) throw Failure("`--stdin-file` is empty");
  check_argv(options.argv);
  return options;
}

Options parse_word(Action action, const std::vector<std::string>& own) {
  Options options;
  options.action = action;
  bool help = false;
  std::string format = "human";
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", help);
  if (action == Action::cancel) {
    app.add_option("ID", options.cancel_id);
  } else {
    app.add_option("--socket", options.settings.socket);
    app.add_option("--format", format);
  }
  parse(app, own);
  if (help) {
    options.action = Action::help;
    return options;
  }
  refuse_leftovers(app, false);
  if (action == Action::cancel && options.cancel_id.empty())
    throw Failure("`cancel` needs the id of a session (`x0x-exec sessions` lists them)");
  if (format != "human" && format != "json")
    throw Failure(fmt::format("`--format` is `json` or `human`, not `{}`", format));
  options.format = format == "json" ? Format::json : Format::human;
  return options;
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  const std::vector<std::string> all(argv + std::min(argc, 1), argv + argc);
  if (!all.empty()) {
    const std::vector<std::string> rest(all.begin() + 1, all.end());
    if (all[0] == "sessions") return parse_word(Action::sessions, rest);
    if (all[0] == "cancel") return parse_word(Action::cancel, rest);
    if (all[0] == "diagnostics") return parse_word(Action::diagnostics, rest);
  }
  const auto dashes = std::ranges::find(all, "--");
  std::vector<std::string> command;
  if (dashes != all.end()) command.assign(dashes + 1, all.end());
  return parse_run({all.begin(), dashes}, std::move(command));
}

std::string_view help_text() { return kHelp; }

}  // namespace x0x::client
