#include "policyc/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "enforcer/text.hpp"
#include "policyc/hex.hpp"
#include "policyc/policy_json.hpp"
#include "policyc/read_table.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// Quoted only where a reader could not tell where the token ends.
std::string show_text(const std::string& text) {
  std::string safe = escape(text);
  if (!safe.empty() && safe.find_first_of(" \"'\\") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
  return quoted + "\"";
}

std::string why_not_int(const std::string& token) {
  if (token.empty()) return "it is empty";
  if (token.find_first_not_of("0123456789") != std::string::npos) return "it holds more than the digits 0 to 9";
  if (token[0] == '0') return "it starts with `0`";
  return "it has more than 6 digits";
}

// Why `path` is not a URL path, or why it cannot follow a prefix.
std::string why_not_url_path(std::string_view path) {
  if (path.empty()) return "nothing follows the fixed part, where a path must start with `/`";
  if (path[0] != '/') return fmt::format("{} stands where the path must start with `/`", quote(path.substr(0, 1)));
  for (std::size_t i = 0; i < path.size();) {
    const CodePoint c = decode(path, i);
    if (c.value >= 0x80 || !c.valid || !is_url_byte(static_cast<std::uint8_t>(c.value)))
      return fmt::format("its path holds {}; only letters, digits and `/ _ . -` may stand there",
                         quote(path.substr(i, c.bytes)));
    i += c.bytes;
  }
  if (path.find("..") != std::string_view::npos) return "its path holds `..`";
  return fmt::format("its path is {} bytes long; 257 is the most", path.size());
}

bool matches(const Token& pattern, const std::string& token) {
  switch (pattern.kind) {
    case Token::Kind::integer:
      return is_int(bytes_of(token));
    case Token::Kind::url_path:
      return token.starts_with(pattern.text) && token.size() > pattern.text.size() &&
             token[pattern.text.size()] == '/' && is_url_tail(bytes_of(token).subspan(pattern.text.size() + 1));
    case Token::Kind::literal:
      break;
  }
  return token == pattern.text;
}

std::string why_not(const Token& pattern, const std::string& token) {
  switch (pattern.kind) {
    case Token::Kind::integer:
      return fmt::format("{} is not a whole number from 1 to 999999: {}", quote(token), why_not_int(token));
    case Token::Kind::url_path:
      if (!token.starts_with(pattern.text))
        return fmt::format("{} does not start with {}", quote(token), quote(pattern.text));
      return fmt::format("{} does not fit: {}", quote(token),
                         why_not_url_path(std::string_view(token).substr(pattern.text.size())));
    case Token::Kind::literal:
      break;
  }
  return fmt::format("{} is not {}", quote(token), quote(pattern.text));
}

std::string why_length(const std::vector<Token>& rule, const std::vector<std::string>& argv) {
  if (argv.size() < rule.size())
    return fmt::format("the request ends here; the command goes on with `{}`", show_token(rule[argv.size()]));
  return fmt::format("the command ends here; the request goes on with {}", quote(argv[rule.size()]));
}

std::string seconds(std::uint64_t n) { return fmt::format("{} s", n); }

std::string byte_count(std::uint64_t n) {
  if (n >= 1 << 20 && n % (1 << 20) == 0) return fmt::format("{} MiB", n >> 20);
  if (n >= 1 << 10 && n % (1 << 10) == 0) return fmt::format("{} KiB", n >> 10);
  return fmt::format("{} bytes", n);
}

std::string place(const LoadedPolicy& loaded, std::uint32_t rule) {
  const RuleName name = rule_name(loaded, rule);
  const std::string path = fmt::format("exec.allow[{}].commands[{}]", name.entry, name.command);
  return name.line == 0 ? path : fmt::format("{} at {}:{}", path, escape(loaded.name), name.line);
}

std::string explain_allow(const LoadedPolicy& loaded, std::uint32_t rule) {
  const BlobView& table = loaded.compiled.table;
  const Caps caps = table.caps(rule);
  const Text description = table.text(table.entry(table.rule(rule).entry).description);
  std::string text =
      fmt::format("  rule     {}\n  command  {}\n", place(loaded, rule), show_argv(rule_argv(table, rule)));
  if (description.present()) text += fmt::format("  entry    {}\n", escape(to_string(description.bytes)));
  return text + fmt::format("  caps     {}, stdout {}, stderr {}, stdin {}\n", seconds(caps.max_duration_secs),
                            byte_count(caps.max_stdout_bytes), byte_count(caps.max_stderr_bytes),
                            caps.max_stdin_bytes == 0 ? "refused" : byte_count(caps.max_stdin_bytes));
}

// The nearest command with a caret under the token that failed.
std::string explain_near_miss(const LoadedPolicy& loaded, const NearMiss& miss) {
  const std::vector<Token> argv = rule_argv(loaded.compiled.table, miss.rule);
  std::string line;
  std::size_t caret = 0, width = 1;
  for (std::size_t i = 0; i <= argv.size(); ++i) {
    if (i == miss.token) caret = line.size();
    if (i == argv.size()) break;
    const std::string token = show_token(argv[i]);
    if (i == miss.token) width = token.size();
    line += token + (i + 1 < argv.size() ? " " : "");
  }
  std::size_t before = 0, under = 0;  // columns, not bytes
  for (std::size_t i = 0; i < std::min(caret + width, line.size());) {
    const CodePoint c = decode(line, i);
    (i < caret ? before : under) += display_width(c.value);
    i += c.bytes;
  }
  return fmt::format("  nearest  {}\n           {}\n           {}{} {}\n", place(loaded, miss.rule), line,
                     std::string(before, ' '), std::string(std::max<std::size_t>(under, 1), '^'), miss.why);
}

std::string explain_forbidden(const OwnedRequest& request) {
  for (std::size_t i = 0; i < request.argv.size(); ++i)
    for (const char c : request.argv[i])
      if (is_forbidden(static_cast<std::uint8_t>(c)) != 0)
        return fmt::format("  token    argv[{}] {} holds {}\n", i, quote(request.argv[i]),
                           quote(std::string_view(&c, 1)));
  return "";
}

// The same agent on other machines, or the same machine with other agents.
std::string explain_pair(const LoadedPolicy& loaded, const OwnedRequest& request) {
  std::string text;
  for (std::size_t i = 0; i < loaded.policy.entries.size(); ++i) {
    const Entry& entry = loaded.policy.entries[i];
    const bool agent = std::equal(entry.agent.begin(), entry.agent.end(), request.pair.begin());
    const bool machine = std::equal(entry.machine.begin(), entry.machine.end(), request.pair.begin() + 32);
    if (agent)
      text += fmt::format("  nearest  exec.allow[{}] is for this agent on machine {}\n", i, to_hex(entry.machine));
    if (machine)
      text += fmt::format("  nearest  exec.allow[{}] is for this machine and agent {}\n", i, to_hex(entry.agent));
    if (!text.empty()) break;
  }
  return text;
}

std::string explain_disabled(const BlobView& table) {
  if (!table.enabled()) return "  policy   `enabled` is not true\n";
  return "  policy   the validity window does not include the time asked about (now, or --at)\n";
}

}  // namespace

std::string show_token(const Token& token) { return show_text(token_source(token)); }

std::string show_argv(const std::vector<Token>& argv) {
  std::string text;
  for (const Token& token : argv) text += (text.empty() ? "" : " ") + show_token(token);
  return text;
}

std::string show_argv(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& token : argv) text += (text.empty() ? "" : " ") + show_text(token);
  return text;
}

std::optional<NearMiss> nearest_rule(const LoadedPolicy& loaded, const OwnedRequest& request) {
  std::optional<NearMiss> best;
  std::size_t best_argc = 0;
  const auto argc_distance = [&](std::size_t argc) {
    return argc > request.argv.size() ? argc - request.argv.size() : request.argv.size() - argc;
  };
  std::uint32_t rule = 0;
  for (const Entry& entry : loaded.policy.entries) {
    const bool ours = std::equal(entry.agent.begin(), entry.agent.end(), request.pair.begin()) &&
                      std::equal(entry.machine.begin(), entry.machine.end(), request.pair.begin() + 32);
    if (!ours) {
      rule += static_cast<std::uint32_t>(entry.commands.size());
      continue;
    }
    for (const Command& command : entry.commands) {
      std::size_t same = 0;
      while (same < std::min(command.argv.size(), request.argv.size()) &&
             matches(command.argv[same], request.argv[same]))
        ++same;
      const bool nearer = !best || same > best->token ||
                          (same == best->token && argc_distance(command.argv.size()) < argc_distance(best_argc));
      if (nearer) {
        const bool length = same == std::min(command.argv.size(), request.argv.size());
        best = {rule, same,
                length ? why_length(command.argv, request.argv) : why_not(command.argv[same], request.argv[same])};
        best_argc = command.argv.size();
      }
      ++rule;
    }
  }
  return best;
}

nlohmann::ordered_json verdict_json(const LoadedPolicy& loaded, const Verdict& verdict) {
  const BlobView& table = loaded.compiled.table;
  const bool allow = is_allow(verdict.decision);
  nlohmann::ordered_json json = {{"decision", allow ? "allow" : "deny"},
                                 {"reason", nullptr},
                                 {"rule", nullptr},
                                 {"matched_acl", nullptr},
                                 {"max_duration_secs", nullptr}};
  if (!allow) json["reason"] = denial_name(verdict.reason);
  if (verdict.rule == blob::kNone) return json;
  const RuleName name = rule_name(loaded, verdict.rule);
  json["rule"] = {{"entry", name.entry}, {"command", name.command}, {"line", nullptr}};
  if (name.line != 0) json["rule"]["line"] = name.line;
  if (const Text description = table.text(table.entry(name.entry).description); description.present())
    json["matched_acl"] = to_string(description.bytes);
  json["max_duration_secs"] = table.caps(verdict.rule).max_duration_secs;
  return json;
}

std::string explain_human(const LoadedPolicy& loaded, const OwnedRequest& request, const Verdict& verdict) {
  if (is_allow(verdict.decision)) return explain_allow(loaded, verdict.rule);
  std::string text = fmt::format("  reason   {}: {}\n", denial_name(verdict.reason), denial_meaning(verdict.reason));
  switch (verdict.reason) {
    case wire::DenialReason::exec_disabled:
      return text + explain_disabled(loaded.compiled.table);
    case wire::DenialReason::shell_metachar_in_argv:
      return text + explain_forbidden(request);
    case wire::DenialReason::agent_machine_not_in_acl:
      return text + explain_pair(loaded, request);
    case wire::DenialReason::argv_not_allowed:
      if (const auto miss = nearest_rule(loaded, request)) return text + explain_near_miss(loaded, *miss);
      return text;
    case wire::DenialReason::stdin_too_large:
    case wire::DenialReason::timeout_too_large:
      return text + explain_allow(loaded, verdict.rule);
    default:
      return text;
  }
}

}  // namespace x0x::policyc
