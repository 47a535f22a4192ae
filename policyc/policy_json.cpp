#include "policyc/policy_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "policyc/hex.hpp"
#include "policyc/text.hpp"
#include "policyc/timestamp.hpp"

namespace x0x::policyc {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
void set(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}
void set_number(Json& json, const char* key, std::uint64_t value) {
  if (value != 0) json[key] = value;
}

std::vector<std::vector<std::string>> argvs(const std::vector<Example>& examples) {
  std::vector<std::vector<std::string>> all;
  all.reserve(examples.size());
  for (const Example& example : examples) all.push_back(example.argv);
  return all;
}

Json limits_json(const Limits& limits) {
  Json json = Json::object();
  set_number(json, "cpu_secs", limits.cpu_secs);
  set_number(json, "memory_bytes", limits.memory_bytes);
  set_number(json, "file_bytes", limits.file_bytes);
  set_number(json, "open_files", limits.open_files);
  set_number(json, "processes", limits.processes);
  return json;
}

// The keys of the policy language, in its own words, so that TOML can be made from it.
Json command_json(const Command& command) {
  Json json;
  for (const Token& token : command.argv) json["argv"].push_back(token_source(token));
  set(json, "exe", command.exe);
  if (command.sha256) json["sha256"] = to_hex(*command.sha256);
  set(json, "reason", command.reason);
  set(json, "cwd", command.cwd);
  if (!command.stdin_allowed) json["stdin"] = false;
  set_number(json, "max_duration_secs", command.max_duration_secs);
  set_number(json, "max_stdout_bytes", command.max_stdout_bytes);
  set_number(json, "max_stderr_bytes", command.max_stderr_bytes);
  set_number(json, "max_stdin_bytes", command.max_stdin_bytes);
  for (const EnvVar& variable : command.env) json["env"][variable.name] = variable.value;
  if (!command.network) json["network"] = false;
  if (const Json limits = limits_json(command.limits); !limits.empty()) json["limits"] = limits;
  set(json, "writable", command.writable);
  if (command.audit_hash) json["audit"] = "hash";
  if (!command.allow.empty()) json["allow"] = argvs(command.allow);
  if (!command.deny.empty()) json["deny"] = argvs(command.deny);
  return json;
}

Json exec_json(const Exec& exec) {
  Json json = {{"enabled", exec.enabled},
               {"max_stdout_bytes", exec.max_stdout_bytes},
               {"max_stderr_bytes", exec.max_stderr_bytes},
               {"max_stdin_bytes", exec.max_stdin_bytes},
               {"max_duration_secs", exec.max_duration_secs},
               {"max_concurrent_per_agent", exec.max_concurrent_per_agent},
               {"max_concurrent_total", exec.max_concurrent_total},
               {"warn_stdout_bytes", exec.warn_stdout_bytes},
               {"warn_stderr_bytes", exec.warn_stderr_bytes},
               {"warn_duration_secs", exec.warn_duration_secs}};
  set(json, "default_cwd", exec.default_cwd);
  json["audit_log_path"] = exec.audit_log_path;
  set(json, "audit_tasklist_id", exec.audit_tasklist_id);
  return json;
}

Json header_json(const Policy& policy) {
  Json json = Json::object();
  set(json, "name", policy.name);
  if (policy.version.value_or(0) != 0) json["version"] = *policy.version;
  if (policy.not_before) json["not_before"] = format_utc(*policy.not_before);
  if (policy.expires) json["expires"] = format_utc(*policy.expires);
  set(json, "audience", policy.audience);
  return json;
}

Json entry_json(const Entry& entry) {
  Json json = Json::object();
  set(json, "description", entry.description);
  json["agent_id"] = to_hex(entry.agent);
  json["machine_id"] = to_hex(entry.machine);
  set_number(json, "max_duration_secs", entry.max_duration_secs);
  return json;
}

// A TOML basic string; everything that could be invisible is escaped.
std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode(text, i);
    if (c.value == '"' || c.value == '\\')
      quoted += fmt::format("\\{}", static_cast<char>(c.value));
    else if (is_control(c.value) || is_invisible(c.value))
      quoted += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c.value));
    else
      quoted += text.substr(i, c.bytes);
    i += c.bytes;
  }
  return quoted + "\"";
}

std::string toml_value(const Json& value, bool date) {
  if (value.is_string()) return date ? value.get<std::string>() : toml_string(value.get<std::string>());
  if (!value.is_array() && !value.is_object()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ", ";
    text += value.is_object() ? fmt::format("{} = {}", key, toml_value(item, false)) : toml_value(item, false);
  }
  return value.is_object() ? fmt::format("{{ {} }}", text) : fmt::format("[{}]", text);
}

std::string toml_table(const std::string& header, const Json& json) {
  std::string text = header + "\n";
  for (const auto& [key, value] : json.items())
    text += fmt::format("{} = {}\n", key, toml_value(value, key == "expires" || key == "not_before"));
  return text;
}

}  // namespace

std::string token_source(const Token& token) {
  switch (token.kind) {
    case Token::Kind::integer:
      return "<INT>";
    case Token::Kind::url_path:
      return token.text + "<URL_PATH>";
    case Token::Kind::literal:
      break;
  }
  return token.text;
}

Json policy_json(const Policy& policy) {
  Json json = {{"policy", header_json(policy)}, {"exec", exec_json(policy.exec)}};
  Json& allow = json["exec"]["allow"] = Json::array();
  for (const Entry& entry : policy.entries) {
    Json& one = allow.emplace_back(entry_json(entry));
    for (const Command& command : entry.commands) one["commands"].push_back(command_json(command));
  }
  return json;
}

std::string policy_toml(const Policy& policy) {
  std::string text;
  if (const Json header = header_json(policy); !header.empty()) text += toml_table("[policy]", header) + "\n";
  text += toml_table("[exec]", exec_json(policy.exec));
  for (const Entry& entry : policy.entries) {
    text += "\n" + toml_table("[[exec.allow]]", entry_json(entry));
    for (const Command& command : entry.commands)
      text += "\n" + toml_table("[[exec.allow.commands]]", command_json(command));
  }
  return text;
}

}  // namespace x0x::policyc
