// Every small policy against every small request: the decider must say what the reference model says.
//
// Policies of up to two rules in every test run; of up to three with X0X_EXHAUSTIVE set (`./dev test --exhaustive`).
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/exhaustive/exhaustive.hpp"
#include "tests/support/reference.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

using Strings = std::vector<std::string>;

// Chosen to overlap: most requests fit several rules, in several ways. The last ones are for `./dev test --exhaustive`.
const Strings kPrograms{"p", "q"}, kAskedPrograms{"p", "q", "/a/b"};
Strings patterns() {
  Strings all{"1", "/a/b", "<INT>", "<URL_PATH>", "/a<URL_PATH>"};
  if (thorough()) all.insert(all.end(), {"/a/<URL_PATH>", "01"});
  return all;
}
Strings asked() {
  Strings all{"1", "2", "/a/b", "/b", "x"};
  if (thorough()) all.insert(all.end(), {"01", "/a//b"});
  return all;
}

// Every sequence of `length` out of `from`, the first out of `heads`.
std::vector<Strings> sequences(const Strings& heads, const Strings& from, std::size_t length) {
  std::vector<Strings> all;
  for (const std::string& head : heads) all.push_back({head});
  for (std::size_t i = 1; i < length; ++i) {
    std::vector<Strings> longer;
    for (const Strings& sequence : all)
      for (const std::string& next : from) {
        longer.push_back(sequence);
        longer.back().push_back(next);
      }
    all = longer;
  }
  return all;
}

std::vector<Strings> up_to(const Strings& heads, const Strings& from, std::size_t length) {
  std::vector<Strings> all;
  for (std::size_t n = 1; n <= length; ++n)
    for (Strings& sequence : sequences(heads, from, n)) all.push_back(std::move(sequence));
  return all;
}

// Every token followed by a NUL.
Strings blocks_of(const std::vector<Strings>& argvs) {
  Strings blocks;
  for (const Strings& argv : argvs) {
    std::string& block = blocks.emplace_back();
    for (const std::string& token : argv) block += token + '\0';
  }
  return blocks;
}

// What the reference model says of each rule alone and each request. The first match of a policy follows from it.
std::vector<std::vector<bool>> ask_the_model(const std::vector<Strings>& rules, const std::vector<Strings>& requests) {
  std::vector<std::vector<bool>> answers;
  for (const Strings& rule : rules) {
    const policyc::Policy alone = policy({entry(1, 1, {rule})});
    std::vector<bool>& row = answers.emplace_back();
    for (const Strings& argv : requests) {
      OwnedRequest request{id(1), id(1), argv};
      row.push_back(reference_decide(alone, request).allowed);
    }
  }
  return answers;
}

}  // namespace

TEST_CASE("all policies of up to 3 rules of 3 tokens, all requests of up to 4 tokens") {
  const std::vector<Strings> rules = up_to(kPrograms, patterns(), 3), requests = up_to(kAskedPrograms, asked(), 4);
  const std::vector<std::vector<bool>> model = ask_the_model(rules, requests);
  const Strings questions = blocks_of(requests);
  const std::size_t most = thorough() ? 3 : 2;
  std::array<std::uint8_t, 64> pair;
  pair.fill(1);
  std::size_t policies = 0, decisions = 0, wrong = 0, allowed = 0;
  const auto check = [&](const std::vector<std::size_t>& chosen) {
    policyc::Policy source = policy({entry(1, 1, {})});
    for (const std::size_t rule : chosen) source.entries[0].commands.push_back(command(rules[rule]));
    const OpenTable table = open_trusted(policyc::emit(source));
    REQUIRE(table.fault == Fault::none);
    for (std::size_t q = 0; q < questions.size(); ++q) {
      const Verdict verdict = x0x::decide(table.view, {pair.data(), bytes(questions[q])}, 1);
      std::uint32_t expected = 0;
      while (expected < chosen.size() && !model[chosen[expected]][q]) ++expected;
      const bool yes = expected < chosen.size();
      wrong += is_allow(verdict.decision) != yes || verdict.rule != (yes ? expected : blob::kNone);
      allowed += yes;
    }
    ++policies;
    decisions += questions.size();
  };
  for (std::size_t a = 0; a < rules.size(); ++a) {
    check({a});
    for (std::size_t b = 0; b < rules.size(); ++b) {
      check({a, b});
      for (std::size_t c = 0; most == 3 && c < rules.size(); ++c) check({a, b, c});
    }
    REQUIRE(wrong == 0);
  }
  CHECK(allowed > decisions / 500);
  MESSAGE(policies << " policies, " << decisions << " decisions, " << allowed << " of them allowed");
}

TEST_CASE("a prefix and <URL_PATH> at every boundary, with every byte there") {
  const std::string whole = "http://h:1/a.b/c";
  std::size_t tried = 0, matched = 0;
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const policyc::Policy source = policy({entry(1, 1, {{"p", whole.substr(0, cut) + "<URL_PATH>"}})});
    const OpenTable table = open_trusted(policyc::emit(source));
    REQUIRE(table.fault == Fault::none);
    for (std::size_t length = 0; length <= whole.size(); ++length)
      for (int b = 0; b < 256; ++b) {
        for (const std::string& tail : {std::string(), std::string("/"), std::string("x/y"), std::string(".")}) {
          const OwnedRequest request{id(1), id(1), {"p", whole.substr(0, length) + static_cast<char>(b) + tail}};
          const bool expected = reference_decide(source, request).allowed;
          REQUIRE(is_allow(test::decide(table.view, request).decision) == expected);
          ++tried;
          matched += expected;
        }
      }
  }
  CHECK(matched > tried / 1000);
}

TEST_CASE("the length of a <URL_PATH>, byte by byte around its limit") {
  const policyc::Policy source = policy({entry(1, 1, {{"p", "h<URL_PATH>"}})});
  const OpenTable table = open_trusted(policyc::emit(source));
  for (std::size_t length = 0; length < 300; ++length) {
    const OwnedRequest request{id(1), id(1), {"p", "h/" + std::string(length, 'x')}};
    REQUIRE(is_allow(test::decide(table.view, request).decision) == reference_decide(source, request).allowed);
    REQUIRE(is_allow(test::decide(table.view, request).decision) == (length <= 256));
  }
}
