#include "policyc/report_formats.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace x0x::policyc {
namespace {

using nlohmann::json;

std::vector<FileReport> sample() {
  std::vector<FileReport> reports(2);
  reports[0].file = "a b,c:%\xff.toml";
  reports[0].diagnostics.report(Kind::unknown_key, {3, 4, 5}, "first\nline", "do: this, 100%");
  reports[0].diagnostics.report(Kind::unknown_table, {7, 1, 2}, "second");
  reports[1].file = "gone.toml";
  reports[1].unreadable = "cannot open `gone.toml`: No such file or directory";
  return reports;
}

std::string written(void (*write)(const std::vector<FileReport>&, const Sink&),
                    const std::vector<FileReport>& reports) {
  std::string text;
  write(reports, [&](std::string_view piece) { text += piece; });
  return text;
}

TEST_CASE("JSON has every field and the counts") {
  const json document = json::parse(written(write_json, sample()));
  CHECK(document["errors"] == 1);
  CHECK(document["warnings"] == 1);
  const json& first = document["diagnostics"].at(0);
  CHECK(first["file"] == "a b,c:%\xef\xbf\xbd.toml");
  CHECK(first["line"] == 3);
  CHECK(first["column"] == 4);
  CHECK(first["length"] == 5);
  CHECK(first["severity"] == "error");
  CHECK(first["code"] == "E010");
  CHECK(first["name"] == "unknown-key");
  CHECK(first["message"] == "first\nline");
  CHECK(first["help"] == "do: this, 100%");
  CHECK(document["diagnostics"].at(1)["help"].is_null());
  CHECK(document["unreadable"].at(0)["file"] == "gone.toml");
  CHECK(json::parse(written(write_json, {}))["diagnostics"].empty());
}

TEST_CASE("SARIF has the parts that the standard requires") {
  const json document = json::parse(written(write_sarif, sample()));
  CHECK(document["version"] == "2.1.0");
  const json& run = document["runs"].at(0);
  const json& driver = run["tool"]["driver"];
  CHECK(driver["name"] == "x0x-policyc");
  CHECK(driver["rules"].size() == all_kinds().size());
  for (const json& result : run["results"]) {
    CHECK(driver["rules"].at(result["ruleIndex"].get<std::size_t>())["id"] == result["ruleId"]);
    CHECK(result["message"]["text"].is_string());
  }
  const json& place = run["results"].at(0)["locations"].at(0)["physicalLocation"];
  CHECK(place["artifactLocation"]["uri"] == "a%20b%2Cc%3A%25%FF.toml");
  CHECK(place["region"] == json({{"startLine", 3}, {"startColumn", 4}, {"endLine", 3}, {"endColumn", 9}}));
  CHECK(run["invocations"].at(0)["executionSuccessful"] == false);
}

TEST_CASE("GitHub commands are escaped, one per line") {
  CHECK(written(write_github, sample()) ==
        "::error file=a "
        "b%2Cc%3A%25\xff.toml,line=3,endLine=3,col=4,endColumn=9,title=E010::first%0Aline%0Ahelp: do: this, "
        "100%25\n"
        "::warning file=a b%2Cc%3A%25\xff.toml,line=7,endLine=7,col=1,endColumn=3,title=W001::second\n"
        "::error file=gone.toml,title=unreadable::cannot open `gone.toml`: No such file or directory\n");
}

}  // namespace
}  // namespace x0x::policyc
