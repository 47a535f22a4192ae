#include "client/inspect.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "client/connection.hpp"
#include "client/report.hpp"

namespace x0x::client {

namespace {

using Json = nlohmann::ordered_json;

Json parse_document(std::string_view document) {
  Json json = Json::parse(document, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    throw Failure("cannot read the enforcer's answer: it is not a JSON object");
  return json;
}

std::string as_shown(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_object()) {
    std::string line;
    for (const auto& [key, part] : value.items())  // of an id in a row of many things, the start will do
      line += (line.empty() ? "" : "  ") + as_shown(part).substr(0, key == "agent_id" ? 8 : std::string::npos);
    return line;
  }
  return printable(value.dump());
}

std::string field(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? "-" : as_shown(*found);
}

std::string age(const Json& session) {
  const auto found = session.is_object() ? session.find("duration_ms") : session.end();
  if (found == session.end() || !found->is_number_unsigned()) return "-";
  const auto ms = found->get<std::uint64_t>();
  return fmt::format("{}.{}s", ms / 1000, ms % 1000 / 100);
}

// `denial_breakdown` → `denial breakdown`
std::string title(std::string_view key) {
  std::string words = printable(key);
  for (char& c : words)
    if (c == '_') c = ' ';
  return words;
}

// Objects become indented blocks, everything else one line each.
void show_tree(const Json& object, std::size_t depth, std::string& text) {
  for (const auto& [key, value] : object.items()) {
    const std::string indent(depth * 2, ' ');
    if (value.is_object() || value.is_array()) {
      text += fmt::format("{}{}{}\n", indent, title(key), value.empty() ? ": none" : "");
      if (value.is_object())
        show_tree(value, depth + 1, text);
      else
        for (const Json& item : value) text += fmt::format("{}  {}\n", indent, as_shown(item));
    } else {
      text +=
          fmt::format("{}{:<{}} {}\n", indent, title(key), 30 - std::min<std::size_t>(depth * 2, 20), as_shown(value));
    }
  }
}

}  // namespace

std::string show_sessions(std::string_view document, Format format) {
  const Json json = parse_document(document);
  if (format == Format::json) return json.dump(2) + "\n";
  const auto sessions = json.find("sessions");
  if (sessions == json.end() || !sessions->is_array())
    throw Failure("cannot read the enforcer's answer: it has no list of sessions");
  if (sessions->empty()) return "no session is running\n";
  std::string text = fmt::format("{:<36}  {:<8}  {:>8}  {:>9}  {}\n", "ID", "AGENT", "PID", "AGE", "COMMAND");
  for (const Json& session : *sessions)
    text += fmt::format("{:<36}  {:<8.8}  {:>8}  {:>9}  {}\n", field(session, "request_id"), field(session, "agent_id"),
                        field(session, "pid"), age(session), field(session, "argv_summary"));
  return text;
}

std::string show_diagnostics(std::string_view document, Format format) {
  const Json json = parse_document(document);
  if (format == Format::json) return json.dump(2) + "\n";
  std::string text;
  show_tree(json, 0, text);
  return text;
}

}  // namespace x0x::client
