// `x0x-policyc explain` and `replay`: ask the enforcer's own decider, about one request or about a log of
// them.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "policyc/cmd_check.hpp"
#include "policyc/commands.hpp"
#include "policyc/explain.hpp"
#include "policyc/line_reader.hpp"
#include "policyc/text.hpp"
#include "policyc/timestamp.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

std::uint64_t time_asked(const std::string& at) {
  if (at.empty()) return now_secs();
  const std::optional<std::uint64_t> secs = parse_utc(at);
  if (!secs) throw UserError(fmt::format("--at {}: not a time like 2026-12-18T00:00:00Z", quote(at)));
  return *secs;
}

// Exit status 1 is a denial, so whatever keeps a policy from being asked is 2.
LoadedPolicy load_policy_to_ask(const std::string& path) try {
  return load_policy(path);
} catch (const UserError& error) {
  throw UserError(error.what());
}

Id id_option(const std::string& option, const std::string& hex) {
  const std::optional<Id> id = parse_id(hex);
  if (!id) throw UserError(fmt::format("{} {}: an id is 64 hexadecimal digits", option, quote(hex)));
  return *id;
}

// ---- explain
// -------------------------------------------------------------------------------------------------

struct ExplainOptions {
  std::string policy, agent, machine, at;
  std::vector<std::string> argv;
  std::uint64_t stdin_bytes = 0;
  std::uint32_t timeout_secs = 0;
  bool cwd = false;
  bool json = false;
};

void print_human(const LoadedPolicy& loaded, const OwnedRequest& request, const Verdict& verdict) {
  const bool allow = is_allow(verdict.decision);
  const bool colour = wants_colour(STDOUT_FILENO);
  fmt::print("{}{}{}  {}\n{}", colour ? (allow ? "\033[1;32m" : "\033[1;31m") : "", allow ? "allow" : "deny ",
             colour ? "\033[0m" : "", show_argv(request.argv), explain_human(loaded, request, verdict));
}

int run_explain(const ExplainOptions& options) {
  OwnedRequest request;
  request.set_pair(id_option("--agent", options.agent), id_option("--machine", options.machine));
  request.argv = options.argv;
  request.cwd_present = options.cwd;
  request.stdin_bytes = options.stdin_bytes;
  request.timeout_ms = options.timeout_secs * 1000;
  const std::uint64_t now = time_asked(options.at);
  const LoadedPolicy loaded = load_policy_to_ask(options.policy);
  const Verdict verdict = request.decide(loaded.compiled.table, now);
  if (!options.json) {
    print_human(loaded, request, verdict);
  } else {
    nlohmann::ordered_json json = verdict_json(loaded, verdict);
    json["nearest"] = nullptr;
    const bool unmatched = !is_allow(verdict.decision) && verdict.reason == wire::DenialReason::argv_not_allowed;
    if (const auto miss = unmatched ? nearest_rule(loaded, request) : std::nullopt) {
      const RuleName name = rule_name(loaded, miss->rule);
      json["nearest"] = {{"entry", name.entry},
                         {"command", name.command},
                         {"line", nullptr},
                         {"token", miss->token},
                         {"why", miss->why}};
      if (name.line != 0) json["nearest"]["line"] = name.line;
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return is_allow(verdict.decision) ? kExitOk : kExitRefused;
}

// ---- replay
// --------------------------------------------------------------------------------------------------

constexpr std::size_t kMaxReplayLineBytes = std::size_t{16} << 20;  // far more than a request may hold

struct ReplayOptions {
  std::string policy, log, at;
};

struct ReplayCounts {
  std::size_t allowed = 0, denied = 0, changed = 0, skipped = 0, malformed = 0;
};

// The request of one log line. Nothing: the line is about something else. Throws when it should be one and is
// not.
std::optional<OwnedRequest> request_of(const nlohmann::json& line) {
  if (!line.is_object()) throw std::runtime_error("not a JSON object");
  if (!line.contains("agent_id") || !line.contains("machine_id") || !line.contains("argv")) return std::nullopt;
  if (line.contains("argv_truncated")) return std::nullopt;  // only its start is known
  OwnedRequest request;
  const auto id = [&](const char* key) {
    const auto parsed = line[key].is_string() ? parse_id(line[key].get<std::string>()) : std::nullopt;
    if (!parsed) throw std::runtime_error(fmt::format("`{}` is not 64 hexadecimal digits", key));
    return *parsed;
  };
  request.set_pair(id("agent_id"), id("machine_id"));
  if (!line["argv"].is_array()) throw std::runtime_error("`argv` is not an array of strings");
  for (const nlohmann::json& token : line["argv"]) {
    if (!token.is_string()) throw std::runtime_error("`argv` is not an array of strings");
    request.argv.push_back(token.get<std::string>());
  }
  if (const auto bytes = line.find("stdin_bytes"); bytes != line.end() && bytes->is_number_unsigned())
    request.stdin_bytes = bytes->get<std::uint64_t>();
  if (const auto ms = line.find("timeout_ms"); ms != line.end() && ms->is_number_unsigned())
    request.timeout_ms = static_cast<std::uint32_t>(std::min<std::uint64_t>(ms->get<std::uint64_t>(), 0xffffffff));
  return request;
}

// Whether the log itself says how this request was decided, and otherwise.
bool decided_otherwise(const nlohmann::json& line, bool allow) {
  const auto event = line.find("event");
  return event != line.end() && *event == (allow ? "denial" : "request");
}

void replay_line(const LoadedPolicy& loaded, std::uint64_t now, const Line& log_line, ReplayCounts& counts) {
  try {
    if (log_line.text.size() > kMaxReplayLineBytes) throw std::runtime_error("too long");
    const nlohmann::json line = nlohmann::json::parse(log_line.text);
    const std::optional<OwnedRequest> request = request_of(line);
    if (!request) {
      ++counts.skipped;
      return;
    }
    const Verdict verdict = request->decide(loaded.compiled.table, now);
    const bool allow = is_allow(verdict.decision);
    ++(allow ? counts.allowed : counts.denied);
    if (decided_otherwise(line, allow)) ++counts.changed;
    nlohmann::ordered_json json = {{"log_line", log_line.number}};
    json.update(verdict_json(loaded, verdict));
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } catch (const nlohmann::json::exception&) {
    ++counts.malformed;
    fmt::print(stderr, "x0x-policyc: line {}: not valid JSON\n", log_line.number);
  } catch (const std::runtime_error& error) {
    ++counts.malformed;
    fmt::print(stderr, "x0x-policyc: line {}: {}\n", log_line.number, error.what());
  }
}

int run_replay(const ReplayOptions& options) {
  const std::uint64_t now = time_asked(options.at);
  const LoadedPolicy loaded = load_policy_to_ask(options.policy);
  LineReader log(options.log, kMaxReplayLineBytes);
  std::ios::sync_with_stdio(false);
  ReplayCounts counts;
  for (Line line; log.next(line);)
    if (line.text.ends_with('~'))  // torn by a crash: the audit log says so in its next record
      ++counts.skipped;
    else if (!line.text.empty())
      replay_line(loaded, now, line, counts);
  std::cout.flush();
  fmt::print(stderr,
             "{} allowed, {} denied, {} decided otherwise than logged, {} lines without a request, {} malformed\n",
             counts.allowed, counts.denied, counts.changed, counts.skipped, counts.malformed);
  return counts.malformed > 0 ? kExitRefused : kExitOk;
}

}  // namespace

void add_explain_command(CLI::App& app, std::function<int()>& run) {
  auto* command =
      app.add_subcommand("explain", "Say whether a request would run, by which rule, or what comes nearest");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("POLICY", options->policy, "A policy file or a compiled table")->required();
  command->add_option("--agent", options->agent, "Agent id, 64 hexadecimal digits")->required()->type_name("HEX");
  command->add_option("--machine", options->machine, "Machine id, 64 hexadecimal digits")->required()->type_name("HEX");
  add_number_option(*command, "--stdin-bytes", options->stdin_bytes, 0, kMaxTomlNumber,
                    "As if the request carried this much standard input");
  add_number_option(*command, "--timeout", options->timeout_secs, 0, 0xffffffffu / 1000,
                    "As if the request asked for this many seconds", "SECS");
  command->add_flag("--cwd", options->cwd, "As if the request named a working directory");
  command->add_option("--at", options->at, "Decide as at this time, such as 2026-12-18T00:00:00Z; without it: now")
      ->type_name("TIME");
  add_format_option(*command, options->json);
  command->add_option("ARGV", options->argv, "The command and its arguments, after --")->required();
  command->footer(
      "Example:\n"
      "  x0x-policyc explain exec-acl.toml --agent $AGENT --machine $MACHINE -- journalctl -u x0xd -n 100\n\n"
      "Exit status: 0 allow, 1 deny, 2 usage or an unusable policy.");
  command->callback([&run, options] { run = [options] { return run_explain(*options); }; });
}

void add_replay_command(CLI::App& app, std::function<int()>& run) {
  auto* command = app.add_subcommand("replay", "Decide every request of a log again, with this policy");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("POLICY", options->policy, "A policy file or a compiled table")->required();
  command->add_option("LOG", options->log, "JSON lines with agent_id, machine_id and argv; - reads standard input")
      ->required();
  command->add_option("--at", options->at, "Decide as at this time, such as 2026-12-18T00:00:00Z; without it: now")
      ->type_name("TIME");
  command->footer(
      "Prints one JSON object per request: log_line, decision, reason, rule, matched_acl, "
      "max_duration_secs.\n"
      "The audit log of x0x-enforcer is such a log; lines about other events are passed over.\n\n"
      "Example:\n"
      "  x0x-policyc replay new.toml /var/log/x0x/exec.log | jq 'select(.decision == \"deny\")'\n\n"
      "Exit status: 0 all lines read, 1 some were malformed, 2 usage or an unusable policy.");
  command->callback([&run, options] { run = [options] { return run_replay(*options); }; });
}

}  // namespace x0x::policyc
