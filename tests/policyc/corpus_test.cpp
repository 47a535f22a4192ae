// corpus/policies/: each file gives exactly the codes that its header announces, where it announces them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "policyc/diagnostic.hpp"
#include "tests/support/run_policyc.hpp"

namespace x0x::policyc {
namespace {

// What examples and tables have to say needs the later stages of the compiler.
const std::set<std::string> kBackEndFiles = {"fail_example_allow.toml", "fail_example_deny.toml",
                                             "fail_too_ambiguous.toml"};

std::vector<std::string> corpus_files() {
  std::vector<std::string> files;
  const std::string root = std::string(std::getenv("X0X_SOURCE_ROOT")) + "/corpus/policies";
  for (const auto& entry : std::filesystem::directory_iterator(root)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string base(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string announced(const std::string& path) {
  constexpr std::string_view kExpect = "# expect: ";
  std::ifstream file(path, std::ios::binary);
  std::string first, second;
  std::getline(file, first);
  std::getline(file, second);
  CHECK_MESSAGE((first.starts_with("# ") || first.starts_with("\xef\xbb\xbf# ")), path << " describes itself");
  REQUIRE_MESSAGE(second.starts_with(kExpect), path << " says what to expect");
  return second.substr(kExpect.size());
}

// What the compiler says about each file, in the words of the headers.
std::map<std::string, std::string> found(const std::vector<std::string>& files) {
  std::vector<std::string> arguments = {"check", "--format", "json"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  const Ran ran = run_policyc(arguments);
  REQUIRE(ran.status == 1);
  std::map<std::string, std::string> all;
  const auto document = nlohmann::json::parse(ran.out);
  for (const auto& d : document["diagnostics"]) {
    std::string& line = all[base(d["file"])];
    line += fmt::format("{}{} {}:{}", line.empty() ? "" : ", ", d["code"].get<std::string>(), d["line"].get<int>(),
                        d["column"].get<int>());
  }
  return all;
}

void check_files(bool back_end) {
  const std::vector<std::string> files = corpus_files();
  auto said = found(files);
  for (const std::string& path : files) {
    const std::string name = base(path);
    if (kBackEndFiles.contains(name) != back_end) continue;
    CAPTURE(name);
    CHECK((said[name].empty() ? "nothing" : said[name]) == announced(path));
  }
}

TEST_CASE("corpus files give what they announce") { check_files(false); }

TEST_CASE("corpus files about examples and ambiguity give what they announce") { check_files(true); }

TEST_CASE("the name of a corpus file is its verdict") {
  for (const std::string& path : corpus_files()) {
    const std::string name = base(path), codes = announced(path);
    CAPTURE(name);
    if (name.starts_with("ok_"))
      CHECK(codes == "nothing");
    else if (name.starts_with("warn_"))
      CHECK((codes.find('W') == 0 && codes.find('E') == std::string::npos));
    else
      CHECK((name.starts_with("fail_") && codes.find('E') == 0));
  }
}

TEST_CASE("every code is announced by some corpus file") {
  std::string all;
  for (const std::string& path : corpus_files()) all += announced(path) + ", ";
  for (const KindInfo& kind : all_kinds())
    CHECK_MESSAGE(all.find(std::string(kind.code) + " ") != std::string::npos, kind.code);
}

}  // namespace
}  // namespace x0x::policyc
