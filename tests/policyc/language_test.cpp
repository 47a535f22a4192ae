// The parser, the JSON Schema and the documents speak of the same keys and codes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "policyc/diagnostic.hpp"
#include "policyc/parse.hpp"
#include "policyc/render.hpp"
#include "tests/support/run_policyc.hpp"

namespace x0x::policyc {
namespace {

using nlohmann::json;
using Keys = std::map<std::string, std::set<std::string>>;  // by table

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(std::getenv("X0X_SOURCE_ROOT")) + "/" + path);
  REQUIRE_MESSAGE(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Keys parser_keys() {
  Keys keys;
  for (const TableKeys& table : all_table_keys())
    keys[std::string(table.table)] = {table.keys.begin(), table.keys.end()};
  return keys;
}

// Every object of the schema that has a title is a table of the language.
void collect(const json& node, Keys& keys) {
  if (node.is_object() && node.contains("title") && node.contains("properties") && !node.contains("$schema")) {
    CHECK(node["additionalProperties"] == false);
    for (const auto& property : node["properties"].items()) {
      CHECK_MESSAGE(property.value().contains("description"), property.key());
      keys[node["title"].get<std::string>()].insert(property.key());
    }
  }
  if (node.is_structured())
    for (const auto& child : node) collect(child, keys);
}

// The first column of the tables below the headings "### `[exec]`".
Keys document_keys() {
  Keys keys;
  std::istringstream text(file_text("docs/policy-language.md"));
  std::string table;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("#")) table = line.starts_with("### `") ? line.substr(5, line.size() - 6) : "";
    if (!table.empty() && line.starts_with("| `")) keys[table].insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

TEST_CASE("parser, schema and document have the same keys") {
  Keys schema_keys;
  collect(json::parse(file_text("schema/exec-acl.schema.json")), schema_keys);
  CHECK(parser_keys() == schema_keys);
  CHECK(parser_keys() == document_keys());
}

TEST_CASE("the schema's defaults are the parser's") {
  const json schema = json::parse(file_text("schema/exec-acl.schema.json"));
  const json& exec = schema["properties"]["exec"]["properties"];
  const Exec defaults;
  CHECK(exec["enabled"]["default"] == defaults.enabled);
  CHECK(exec["max_stdout_bytes"]["default"] == defaults.max_stdout_bytes);
  CHECK(exec["max_stderr_bytes"]["default"] == defaults.max_stderr_bytes);
  CHECK(exec["max_stdin_bytes"]["default"] == defaults.max_stdin_bytes);
  CHECK(exec["max_duration_secs"]["default"] == defaults.max_duration_secs);
  CHECK(exec["max_concurrent_per_agent"]["default"] == defaults.max_concurrent_per_agent);
  CHECK(exec["max_concurrent_total"]["default"] == defaults.max_concurrent_total);
  CHECK(exec["warn_stdout_bytes"]["default"] == defaults.warn_stdout_bytes);
  CHECK(exec["warn_stderr_bytes"]["default"] == defaults.warn_stderr_bytes);
  CHECK(exec["warn_duration_secs"]["default"] == defaults.warn_duration_secs);
  CHECK(exec["audit_log_path"]["default"] == defaults.audit_log_path);
}

TEST_CASE("docs/diagnostics.md explains every code, and no other") {
  const std::string text = file_text("docs/diagnostics.md");
  std::size_t at = 0, sections = 0;
  for (const KindInfo& kind : all_kinds()) {
    std::string summary(kind.summary);
    if (summary[0] >= 'a' && summary[0] <= 'z') summary[0] = static_cast<char>(summary[0] - 'a' + 'A');
    const std::string heading = fmt::format("### {} {}\n\n{}.\n", kind.code, kind.name, summary);
    const std::size_t found = text.find(heading, at);
    CHECK_MESSAGE(found != std::string::npos, heading);
    if (found != std::string::npos) at = found;
  }
  for (std::size_t i = text.find("\n### "); i != std::string::npos; i = text.find("\n### ", i + 1)) ++sections;
  CHECK(sections == all_kinds().size());
}

// A policy in a toml block, followed by a block with a command line and what it prints.
TEST_CASE("the examples in docs/policy-language.md print what the document says") {
  const std::string text = file_text("docs/policy-language.md");
  const std::string_view prompt = "```\n$ x0x-policyc check ";
  std::size_t examples = 0;
  for (std::size_t at = text.find(prompt); at != std::string::npos; at = text.find(prompt, at + 1)) {
    const std::size_t toml = text.rfind("```toml\n", at) + 8;
    const std::size_t name = at + prompt.size(), output = text.find('\n', name) + 1;
    const Scratch scratch;
    const std::string file = text.substr(name, output - 1 - name);
    const std::string policy = text.substr(toml, text.find("```", toml) - toml);
    std::ofstream(scratch.path(file)) << policy;
    const Ran ran = run_policyc({"check", file}, "", scratch.path(""));
    CHECK(ran.err == text.substr(output, text.find("```", output) - output));
    ++examples;
  }
  CHECK(examples >= 2);
}

}  // namespace
}  // namespace x0x::policyc
