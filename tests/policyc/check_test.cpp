#include "policyc/check.hpp"

#include <doctest/doctest.h>
#include <re2/re2.h>

#include <random>
#include <vector>

#include "tests/policyc/front_end.hpp"

namespace x0x::policyc {
namespace {

Token literal(std::string text) { return {Token::Kind::literal, std::move(text), {}}; }
Token integer() { return {Token::Kind::integer, {}, {}}; }
Token url_path(std::string prefix) { return {Token::Kind::url_path, std::move(prefix), {}}; }

// The rule as it is written down, one pair of tokens at a time.
bool covers(const Token& a, const Token& b) {
  if (a == b) return true;
  if (b.kind != Token::Kind::literal) return false;
  if (a.kind == Token::Kind::integer) return re2::RE2::FullMatch(b.text, "[1-9][0-9]{0,5}");
  if (a.kind != Token::Kind::url_path || !b.text.starts_with(a.text)) return false;
  const std::string rest = b.text.substr(a.text.size());
  return re2::RE2::FullMatch(rest, "/[A-Za-z0-9/_.-]{0,256}") && rest.find("..") == std::string::npos;
}

bool covers(const Command& a, const Command& b) {
  if (a.argv.size() != b.argv.size()) return false;
  for (std::size_t i = 0; i < a.argv.size(); ++i)
    if (!covers(a.argv[i], b.argv[i])) return false;
  return true;
}

// Lines of the shadowed commands, by comparing each with each before it.
std::vector<std::uint32_t> shadowed_slowly(const Policy& policy) {
  std::vector<std::uint32_t> lines;
  std::vector<std::pair<const Entry*, const Command*>> before;
  for (const Entry& entry : policy.entries) {
    for (const Command& command : entry.commands) {
      const bool shadowed = std::any_of(before.begin(), before.end(), [&](const auto& earlier) {
        return earlier.first->agent == entry.agent && earlier.first->machine == entry.machine &&
               covers(*earlier.second, command);
      });
      if (shadowed) lines.push_back(command.argv_span.line);
      before.emplace_back(&entry, &command);
    }
  }
  return lines;
}

TEST_CASE("shadowing is what comparing each command with each earlier one finds") {
  const std::vector<Token> choices = {literal("1"),  literal("a"),   literal("007"),     literal("/x/y"),
                                      literal("/x"), literal("p/x"), literal("/x/../y"), integer(),
                                      url_path(""),  url_path("p"),  url_path("/x"),     literal("")};
  std::mt19937 random(7);
  std::size_t found = 0;
  for (int round = 0; round < 2000; ++round) {
    Policy policy;
    std::uint32_t line = 1;
    for (int e = 0; e < 3; ++e) {
      Entry& entry = policy.entries.emplace_back();
      entry.agent[0] = static_cast<std::uint8_t>(random() % 2);
      for (int c = 0; c < 6; ++c) {
        Command& command = entry.commands.emplace_back();
        command.argv.push_back(literal("run"));
        for (std::size_t n = random() % 3; n > 0; --n) command.argv.push_back(choices[random() % choices.size()]);
        command.argv_span = {line++, 1, 1};
      }
    }
    Diagnostics diagnostics;
    check_shadowing(policy, diagnostics);
    std::vector<std::uint32_t> lines;
    for (const Diagnostic& d : diagnostics.all()) lines.push_back(d.span.line);
    REQUIRE(lines == shadowed_slowly(policy));
    found += lines.size();
  }
  CHECK(found > 1000);
}

TEST_CASE("the warning names the line of the command that is first") {
  const Checked checked = check_text("[exec]\n" + entry_text() + command_text(R"(["kill", "<INT>"])") +
                                     command_text(R"(["kill", "5"])") + command_text(R"(["kill", "<INT>"])"));
  CHECK(checked.summary() == "W002 9:8, W002 12:8");
  CHECK(checked.diagnostics.all()[0].help.find("line 6 matches everything") != std::string::npos);
  CHECK(checked.diagnostics.all()[1].help.find("line 6 has the same argv") != std::string::npos);
}

TEST_CASE("a shorter URL prefix does not shadow a longer one") {
  const Checked checked = check_text("[exec]\n" + entry_text() + command_text(R"(["cat", "/a<URL_PATH>"])") +
                                     command_text(R"(["cat", "/a/b<URL_PATH>"])"));
  CHECK(checked.summary().empty());
}

TEST_CASE("a policy too ambiguous for a table costs no more than another") {
  Policy policy;
  Entry& entry = policy.entries.emplace_back();
  for (std::uint32_t bits = 1u << 14; bits-- > 0;) {
    Command& command = entry.commands.emplace_back();
    command.argv.push_back(literal("run"));
    for (int i = 0; i < 14; ++i) command.argv.push_back((bits >> i & 1) != 0 ? literal("1") : integer());
  }
  Diagnostics diagnostics;
  check_shadowing(policy, diagnostics);
  CHECK(diagnostics.all().empty());  // the widest command comes last
}

}  // namespace
}  // namespace x0x::policyc
