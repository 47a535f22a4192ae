#include "policyc/report_formats.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

using Json = nlohmann::ordered_json;

const char* severity_name(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

// File names are bytes; a name that is not UTF-8 is replaced, never a reason to fail.
std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A JSON array, one element per line. It is written as it comes: a tree of a million problems would take gigabytes.
class List {
 public:
  explicit List(const Sink& sink) : sink_(sink) { sink_("["); }
  void add(const Json& element) {
    sink_(std::exchange(separator_, ",\n"));
    sink_(dump(element));
  }
  void end() { sink_("]"); }

 private:
  const Sink& sink_;
  std::string_view separator_ = "\n";
};

Json sarif_rules() {
  Json rules = Json::array();
  for (const KindInfo& kind : all_kinds())
    rules.push_back({{"id", kind.code},
                     {"name", kind.name},
                     {"shortDescription", {{"text", kind.summary}}},
                     {"defaultConfiguration", {{"level", severity_name(kind.severity())}}}});
  return rules;
}

// A file name as a relative or absolute URI reference.
std::string uri_of(std::string_view file) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string uri;
  for (const char c : file) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

Json json_of(const std::string& file, const Diagnostic& diagnostic) {
  const KindInfo& kind = info(diagnostic.kind);
  return {{"file", file},
          {"line", diagnostic.span.line},
          {"column", diagnostic.span.column},
          {"length", diagnostic.span.length},
          {"severity", severity_name(diagnostic.severity)},
          {"code", kind.code},
          {"name", kind.name},
          {"message", diagnostic.message},
          {"help", diagnostic.help.empty() ? Json() : Json(diagnostic.help)}};
}

Json sarif_result(const std::string& file, const Diagnostic& diagnostic) {
  const KindInfo& kind = info(diagnostic.kind);
  const Span& span = diagnostic.span;
  const std::string text =
      diagnostic.help.empty() ? diagnostic.message : fmt::format("{}\nhelp: {}", diagnostic.message, diagnostic.help);
  const Json region = {{"startLine", span.line},
                       {"startColumn", span.column},
                       {"endLine", span.line},
                       {"endColumn", span.column + span.length}};
  const Json place = {{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(file)}}}, {"region", region}}}};
  return {{"ruleId", kind.code},
          {"ruleIndex", static_cast<std::size_t>(diagnostic.kind)},
          {"level", severity_name(diagnostic.severity)},
          {"message", {{"text", text}}},
          {"locations", Json::array({place})}};
}

// GitHub's escapes: what would end the value or the line.
std::string github_escape(std::string_view text, bool property) {
  std::string escaped;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

void write_json(const std::vector<FileReport>& reports, const Sink& sink) {
  std::size_t errors = 0, warnings = 0;
  sink("{\n\"diagnostics\": ");
  List diagnostics(sink);
  for (const FileReport& report : reports) {
    for (const Diagnostic& diagnostic : report.diagnostics.all()) diagnostics.add(json_of(report.file, diagnostic));
    errors += report.diagnostics.errors();
    warnings += report.diagnostics.warnings();
  }
  diagnostics.end();
  sink(",\n\"unreadable\": ");
  List unreadable(sink);
  for (const FileReport& report : reports)
    if (!report.unreadable.empty()) unreadable.add({{"file", report.file}, {"message", report.unreadable}});
  unreadable.end();
  sink(fmt::format(",\n\"errors\": {},\n\"warnings\": {}\n}}\n", errors, warnings));
}

void write_sarif(const std::vector<FileReport>& reports, const Sink& sink) {
  const Json tool = {{"driver", {{"name", "x0x-policyc"}, {"rules", sarif_rules()}}}};
  Json notifications = Json::array();
  for (const FileReport& report : reports)
    if (!report.unreadable.empty())
      notifications.push_back({{"level", "error"}, {"message", {{"text", report.unreadable}}}});
  const Json invocation = {{"executionSuccessful", notifications.empty()},
                           {"toolExecutionNotifications", notifications}};
  sink(
      fmt::format("{{\n\"version\": \"2.1.0\",\n\"runs\": [{{\n\"tool\": {},\n\"columnKind\": \"unicodeCodePoints\",\n",
                  dump(tool)));
  sink(fmt::format("\"invocations\": [{}],\n\"results\": ", dump(invocation)));
  List results(sink);
  for (const FileReport& report : reports)
    for (const Diagnostic& diagnostic : report.diagnostics.all()) results.add(sarif_result(report.file, diagnostic));
  results.end();
  sink("\n}]\n}\n");
}

void write_github(const std::vector<FileReport>& reports, const Sink& sink) {
  for (const FileReport& report : reports) {
    const std::string file = github_escape(report.file, true);
    if (!report.unreadable.empty())
      sink(fmt::format("::error file={},title=unreadable::{}\n", file, github_escape(report.unreadable, false)));
    for (const Diagnostic& diagnostic : report.diagnostics.all()) {
      const Span& span = diagnostic.span;
      std::string text = diagnostic.message;
      if (!diagnostic.help.empty()) text += "\nhelp: " + diagnostic.help;
      sink(fmt::format("::{} file={},line={},endLine={},col={},endColumn={},title={}::{}\n",
                       severity_name(diagnostic.severity), file, span.line, span.line, span.column,
                       span.column + span.length, info(diagnostic.kind).code, github_escape(text, false)));
    }
  }
}

}  // namespace x0x::policyc
