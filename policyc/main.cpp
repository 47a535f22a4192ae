// x0x-policyc: one subcommand per task. The compiler itself is cmd_compile.cpp: parse, check, lower, emit,
// sign.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "policyc/commands.hpp"
#include "policyc/secret.hpp"
#include "policyc/suggest.hpp"
#include "policyc/text.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

// What an option takes, in one word; CLI11's own form adds how it is validated.
class PlainFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_option_text().empty() ? option->get_type_name() : option->get_option_text();
    const bool named = option->nonpositional() && !type.empty();
    return fmt::format("{}{}{}{}", named ? " " : "", named ? type.substr(0, type.find(':')) : "",
                       option->get_expected_max() > 1 ? " ..." : "", option->get_required() ? " (required)" : "");
  }
};

std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  std::string program = app->get_name();
  for (; !app->get_subcommands().empty(); program += " " + app->get_name()) app = app->get_subcommands().front();
  return fmt::format("x0x-policyc: {} (see `{} --help`)\n", escape(error.what()), program);
}

// CLI11 would say that a subcommand is missing.
void refuse_unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string_view> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (word.starts_with('-') || std::ranges::find(known, word) != known.end()) return;
  const std::optional<std::string_view> meant = nearest(word, known);
  throw UserError(fmt::format("unknown command {}{}", quote(word),
                              meant ? fmt::format("; did you mean `{}`?", *meant) : " (see `x0x-policyc --help`)"));
}

// An answer that did not arrive is not an answer: a full disk must not pass for success.
int delivered(int status) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "x0x-policyc: cannot write to standard output\n");
  return kExitUsage;
}

}  // namespace

}  // namespace x0x::policyc

int main(int argc, char** argv) {
  using namespace x0x::policyc;
  CLI::App app{"Compiles allowlists of commands into signed decision tables, and explains what they allow.",
               "x0x-policyc"};
  app.formatter(std::make_shared<PlainFormatter>());
  app.failure_message(usage_error);
  app.get_formatter()->label("Positionals", "Arguments");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("OPTIONS", "options");
  app.set_help_flag("-h,--help", "This text");
  app.set_version_flag("--version", "x0x-policyc " X0X_VERSION, "Name and version");
  app.require_subcommand(1);
  app.footer(
      "From nothing to a table:\n"
      "  x0x-policyc keygen -p policy.pub -s policy.key\n"
      "  x0x-policyc check exec-acl.toml\n"
      "  x0x-policyc compile exec-acl.toml -o exec-policy.x0xp --key policy.key --expires-in 30d\n"
      "  x0x-policyc verify exec-policy.x0xp --trust policy.pub\n"
      "  x0x-policyc explain exec-policy.x0xp --agent HEX --machine HEX -- uptime\n\n"
      "`x0x-policyc COMMAND --help` explains each; x0x-policyc(1) and exec-acl.toml(5) say the rest.\n\n"
      "Exit status: 0 success, 1 problems found or request denied, 2 usage or I/O.");

  std::function<int()> run;
  add_check_command(app, run);
  add_compile_command(app, run);
  add_keygen_command(app, run);
  add_sign_command(app, run);
  add_verify_command(app, run);
  add_inspect_command(app, run);
  add_decompile_command(app, run);
  add_explain_command(app, run);
  add_replay_command(app, run);
  add_audit_command(app, run);

  try {
    if (argc > 1) refuse_unknown_command(app, argv[1]);
    app.parse(argc, argv);
    start_crypto();
    return delivered(run());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? delivered(kExitOk) : kExitUsage;
  } catch (const UserError& error) {
    fmt::print(stderr, "x0x-policyc: {}\n", escape(error.what()));  // file names may hold anything
    return error.exit_code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "x0x-policyc: {}\n", escape(error.what()));
    return kExitUsage;
  }
}
