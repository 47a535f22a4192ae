#include "policyc/compile.hpp"

#include <doctest/doctest.h>

#include "tests/support/table.hpp"

using namespace x0x::policyc;
using x0x::test::entry;
using x0x::test::policy;

namespace {

Policy with_examples(bool enabled) {
  Policy source = policy({entry(1, 2, {{"kill", "<INT>"}, {"ls"}})});
  source.exec.enabled = enabled;
  source.entries[0].commands[0].allow = {{{"kill", "7"}, {10, 3, 5}}, {{"ls"}, {11, 3, 5}}};
  source.entries[0].commands[0].deny = {{{"kill", "0"}, {12, 3, 5}}, {{"kill", "7;8"}, {13, 3, 5}}};
  return source;
}

}  // namespace

TEST_CASE("examples that hold say nothing, also in a disabled or future policy") {
  for (const bool enabled : {true, false}) {
    Policy source = with_examples(enabled);
    source.not_before = 4'000'000'000;
    Diagnostics diagnostics;
    CHECK(compile_policy(source, diagnostics).has_value());
    CHECK(diagnostics.all().empty());
  }
}

TEST_CASE("an example that does not hold is an error at its place and names the rule") {
  for (const bool enabled : {true, false}) {
    Policy source = with_examples(enabled);
    source.entries[0].commands[0].allow.push_back({{"kill", "-9"}, {14, 3, 5}});
    source.entries[0].commands[1].deny.push_back({{"kill", "8"}, {15, 3, 5}});
    source.entries[0].commands[0].span.line = 9;
    Diagnostics diagnostics;
    CHECK(compile_policy(source, diagnostics).has_value());
    REQUIRE(diagnostics.errors() == 2);
    CHECK(diagnostics.all()[0].kind == Kind::example_failed);
    CHECK(diagnostics.all()[0].span.line == 14);
    CHECK(diagnostics.all()[0].message.find("argv_not_allowed") != std::string::npos);
    CHECK(diagnostics.all()[1].span.line == 15);
    CHECK(diagnostics.all()[1].message.find("`exec.allow[0].commands[0]` on line 9") != std::string::npos);
  }
}

TEST_CASE("a pair with too many shapes has no table and says which command is too much") {
  std::vector<std::vector<std::string>> argvs;
  for (std::size_t i = 0; i <= x0x::blob::kMaxShapes; ++i) argvs.push_back({"get", std::string(i, 'x') + "<URL_PATH>"});
  Policy source = policy({entry(1, 1, argvs)});
  source.entries[0].commands.back().argv_span.line = 99;
  Diagnostics diagnostics;
  CHECK_FALSE(compile_policy(source, diagnostics).has_value());
  REQUIRE(diagnostics.errors() == 1);
  CHECK(diagnostics.all()[0].kind == Kind::too_ambiguous);
  CHECK(diagnostics.all()[0].span.line == 99);
}
