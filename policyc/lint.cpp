#include "policyc/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policyc/programs.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

constexpr std::string_view kWorldWritable[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock"};

// `/usr//bin/../lib/./x` as `/usr/lib/x`, without asking the file system.
std::string normalised(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string whole;
  for (const std::string_view part : parts) whole.append("/").append(part);
  return whole;
}

bool blank(const std::optional<std::string>& text) {
  return !text || text->find_first_not_of(" \t\n") == std::string::npos;
}

// The program that would run others: the file that is executed, or the name it is called by.
std::string_view runner_of(const Command& command) {
  const std::string_view called = base_name(command.argv[0].text);
  if (runs_programs(called)) return called;
  const std::string_view file = command.exe ? base_name(*command.exe) : std::string_view();
  return runs_programs(file) ? file : std::string_view();
}

void lint_runner(const Command& command, Diagnostics& diagnostics) {
  if (!blank(command.reason)) return;
  const std::string_view program = runner_of(command);
  if (program.empty()) return;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const Token& token = command.argv[i];
    if (token.kind != Token::Kind::literal || !takes_code(program, token.text)) continue;
    diagnostics.report(Kind::runs_given_code, token.span,
                       fmt::format("{} tells {} to run code from its arguments", quote(token.text), quote(program)),
                       "put the code in a script that only root can write to and allow that, or say why in `reason`");
    return;
  }
  diagnostics.report(Kind::runs_other_programs, command.argv[0].span,
                     fmt::format("{} can run other programs", quote(program)),
                     "check that these arguments cannot make it do so, and say why they are needed in `reason`");
}

struct OpenUrl {
  std::string message, help;
};

// What a requester can choose because the fixed part before <URL_PATH> stops too early. The path itself
// always begins with `/`.
OpenUrl open_part(std::string_view prefix) {
  const std::size_t scheme = prefix.rfind("://");
  if (prefix.empty() || prefix.ends_with('=') || prefix.ends_with('@'))
    return {"`<URL_PATH>` matches every absolute path here",
            "put the directory or the host in front of it: `/srv/www<URL_PATH>`, "
            "`http://127.0.0.1:80<URL_PATH>`"};
  const bool after_scheme = scheme != std::string_view::npos && scheme + 3 == prefix.size();
  if (after_scheme || prefix.ends_with(":/") || (prefix.ends_with(':') && scheme == std::string_view::npos))
    return {"`<URL_PATH>` directly after a scheme leaves the host to the requester",
            "clients skip extra slashes, so `/evil.example/x` names a host; write host and port out"};
  if (scheme == std::string_view::npos) return {};
  const std::string_view host = prefix.substr(scheme + 3);
  if (host.find('/') != std::string_view::npos) return {};
  const std::size_t colon = host.rfind(':');
  const bool port = colon != std::string_view::npos && colon + 1 < host.size() &&
                    host.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  if (port) return {};
  return {"`<URL_PATH>` directly after a host without a port",
          "the path begins with `/`, so the host is fixed, but the port is left to the client's defaults; "
          "write it out "
          "or end the fixed part with a slash"};
}

void lint_urls(const Command& command, Diagnostics& diagnostics) {
  for (const Token& token : command.argv) {
    if (token.kind != Token::Kind::url_path) continue;
    OpenUrl open = open_part(token.text);
    if (!open.message.empty())
      diagnostics.report(Kind::open_url_path, token.span, std::move(open.message), std::move(open.help));
  }
}

bool has_argument(const Command& command, std::string_view argument) {
  return std::any_of(command.argv.begin() + 1, command.argv.end(),
                     [&](const Token& token) { return token.kind == Token::Kind::literal && token.text == argument; });
}

bool is_program(const Command& command, std::string_view name) {
  return base_name(command.argv[0].text) == name || (command.exe && base_name(*command.exe) == name);
}

void lint_curl(const Command& command, Diagnostics& diagnostics) {
  if (!is_program(command, "curl")) return;
  const bool first = command.argv.size() > 1 && command.argv[1].kind == Token::Kind::literal;
  if (first && (command.argv[1].text.starts_with("-q") || command.argv[1].text == "--disable")) return;
  diagnostics.report(Kind::curl_reads_config, command.argv[0].span, "`curl` reads `.curlrc` from its home directory",
                     "make `-q` its first argument, the only place where curl obeys it");
}

void lint_pager(const Command& command, Diagnostics& diagnostics) {
  if (!is_program(command, "journalctl") || has_argument(command, "--no-pager")) return;
  diagnostics.report(Kind::starts_pager, command.argv[0].span, "`journalctl` may start a pager, which can run programs",
                     "add `--no-pager`");
}

}  // namespace

void lint_path(std::string_view what, std::string_view path, Span span, Diagnostics& diagnostics) {
  const std::string whole = normalised(path);
  for (const std::string_view directory : kWorldWritable) {
    if (!whole.starts_with(directory)) continue;
    if (whole.size() > directory.size() && whole[directory.size()] != '/') continue;
    diagnostics.report(Kind::world_writable_path, span,
                       fmt::format("`{}` is in `{}`, where everybody can write", what, directory),
                       "another user could put something else there; use a directory that only root can write to");
    return;
  }
}

void lint_command(const Command& command, const CommandSites& sites, Diagnostics& diagnostics) {
  lint_runner(command, diagnostics);
  lint_urls(command, diagnostics);
  lint_curl(command, diagnostics);
  lint_pager(command, diagnostics);
  if (command.argv[0].text[0] == '/') lint_path("argv[0]", command.argv[0].text, command.argv[0].span, diagnostics);
  if (command.exe) lint_path("exe", *command.exe, sites.exe, diagnostics);
  if (command.cwd) lint_path("cwd", *command.cwd, sites.cwd, diagnostics);
}

}  // namespace x0x::policyc
