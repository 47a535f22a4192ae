// The index hashes fast, not safely: whoever sends requests can make two keys meet in it. Only the comparison decides.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;
using wire::DenialReason;

TEST_CASE("an agent id made to have the hash of another is still a stranger") {
  // The words of an id are added up, and a sum does not tell in which order.
  policyc::Id known{};
  known[0] = known[9] = 1;
  policyc::Id forged = known;
  std::swap_ranges(forged.begin(), forged.begin() + 8, forged.begin() + 8);
  std::uint8_t keys[2][blob::kPairBytes] = {};
  std::copy(known.begin(), known.end(), keys[0]);
  std::copy(forged.begin(), forged.end(), keys[1]);
  REQUIRE(known != forged);
  REQUIRE(hash_pair(keys[0]) == hash_pair(keys[1]));

  policyc::Policy source = policy({entry(0, 0, {{"id"}})});
  source.entries[0].agent = known;
  const OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);
  CHECK(is_allow(decide(table.view, OwnedRequest{known, {}, {"id"}}).decision));
  CHECK(decide(table.view, OwnedRequest{forged, {}, {"id"}}).reason == DenialReason::agent_machine_not_in_acl);

  source.entries.push_back(entry(0, 0, {{"uptime"}}));  // both may be in one table, and each has its own rules
  source.entries[1].agent = forged;
  const OpenTable both = open_policy(source);
  REQUIRE(both.fault == Fault::none);
  CHECK(decide(both.view, OwnedRequest{known, {}, {"uptime"}}).reason == DenialReason::argv_not_allowed);
  CHECK(decide(both.view, OwnedRequest{forged, {}, {"id"}}).reason == DenialReason::argv_not_allowed);
  CHECK(is_allow(decide(both.view, OwnedRequest{known, {}, {"id"}}).decision));
  CHECK(decide(both.view, OwnedRequest{forged, {}, {"uptime"}}).rule == 1);
}

// The hash multiplies its first two words, each changed by a constant, and a product does not tell its factors apart:
// with the constants taken into account the words can change places. All of it can be plain text.
std::pair<std::string, std::string> colliding_words() {
  const auto plain = [](std::uint64_t c) { return c < 0x7f && std::isalnum(static_cast<int>(c)) != 0; };
  for (std::size_t size = 32;; ++size) {  // from here on, what is hashed last does not overlap them
    const std::uint64_t change = (size * blob::kHashLength) ^ blob::kHashFirst;
    std::string one, other;
    for (std::size_t i = 0; i < 8; ++i)
      for (std::uint64_t c = 'a'; c <= 'z' && one.size() == i; ++c)
        if (const std::uint64_t there = c ^ (change >> (8 * i) & 0xff); plain(there) && there != c)
          one += static_cast<char>(c), other += static_cast<char>(there);
    if (one.size() < 8) continue;
    // (one, one) becomes (other, other): both words change places, and each by the same constants.
    const std::string rest(size - 17, 'r');
    return {one + one + rest, other + other + rest};
  }
}

TEST_CASE("an argv made to have the hash of a rule's matches nothing") {
  const auto [known, forged] = colliding_words();
  REQUIRE(known != forged);
  REQUIRE(hash_bytes(0, bytes(known + '\0')) == hash_bytes(0, bytes(forged + '\0')));
  const OpenTable table = open_policy(policy({entry(1, 1, {{known}})}));
  REQUIRE(table.fault == Fault::none);
  CHECK(is_allow(decide(table.view, OwnedRequest{id(1), id(1), {known}}).decision));
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {forged}}).reason == DenialReason::argv_not_allowed);

  const OpenTable number = open_policy(policy({entry(1, 1, {{known, "<INT>"}})}));
  CHECK(is_allow(decide(number.view, OwnedRequest{id(1), id(1), {known, "5"}}).decision));
  CHECK(decide(number.view, OwnedRequest{id(1), id(1), {forged, "5"}}).reason == DenialReason::argv_not_allowed);

  const OpenTable both = open_policy(policy({entry(1, 1, {{known}, {forged}})}));
  REQUIRE(both.fault == Fault::none);
  CHECK(decide(both.view, OwnedRequest{id(1), id(1), {known}}).rule == 0);
  CHECK(decide(both.view, OwnedRequest{id(1), id(1), {forged}}).rule == 1);
}

// Two words of different lengths whose hashes share the upper half: among so many there are some.
std::pair<std::string, std::string> words_with_one_tag() {
  std::unordered_map<std::uint64_t, std::string> seen;
  for (std::uint32_t i = 0;; ++i) {
    const std::string word = "w" + std::to_string(i);
    const auto [other, fresh] = seen.emplace(hash_bytes(0, bytes(word + '\0')) >> 32, word);
    if (!fresh && other->second.size() != word.size()) return {other->second, word};
  }
}

TEST_CASE("a longer argv with the tag of a rule's matches nothing, nor does a shorter one") {
  const auto [shorter, longer] = words_with_one_tag();
  for (const auto& [known, forged] : {std::pair{shorter, longer}, std::pair{longer, shorter}}) {
    const OpenTable table = open_policy(policy({entry(1, 1, {{known}})}));
    CHECK(is_allow(decide(table.view, OwnedRequest{id(1), id(1), {known}}).decision));
    CHECK(decide(table.view, OwnedRequest{id(1), id(1), {forged}}).reason == DenialReason::argv_not_allowed);
  }
}

TEST_CASE("an argv whose runs are as long as a rule's in all, and are divided elsewhere, matches nothing") {
  // The token after the template lacks its first letter, and the program's name is followed by an empty token.
  const std::string program = "/usr/bin/echo";
  for (const std::string last : {"aEOhP2CAA", "aF7X0sBAA"}) {
    const std::string rest = last.substr(1) + '\0', first = program + '\0';
    const std::uint64_t known = hash_bytes(hash_bytes(0, bytes('a' + rest)), bytes(first));
    const std::uint64_t forged = hash_bytes(hash_bytes(0, bytes(rest)), bytes(first + '\0'));
    REQUIRE((known >> 32) == (forged >> 32));
    const OpenTable table = open_policy(policy({entry(1, 1, {{program, "<INT>", last}})}));
    CHECK(is_allow(decide(table.view, OwnedRequest{id(1), id(1), {program, "5", last}}).decision));
    CHECK(decide(table.view, OwnedRequest{id(1), id(1), {program, "", "5", last.substr(1)}}).reason ==
          DenialReason::argv_not_allowed);
  }
}

TEST_CASE("a rule of another shape is not taken for one with the same fixed bytes") {
  const OpenTable table =
      open_policy(policy({entry(1, 1, {{"name", ""}, {"other", "<INT>"}, {"third", "/<URL_PATH>"}})}));
  REQUIRE(table.fault == Fault::none);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {"name", ""}}).rule == 0);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {"name", "5"}}).reason == DenialReason::argv_not_allowed);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {"other", ""}}).reason == DenialReason::argv_not_allowed);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {"third", "/"}}).reason == DenialReason::argv_not_allowed);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {"third", "//"}}).rule == 2);
}

TEST_CASE("a template is found from the end, and tokens before the first of a rule count too") {
  const OpenTable table = open_policy(policy({entry(1, 1, {{"a", "<INT>"}, {"b", "<INT>", "x", "y"}})}));
  REQUIRE(table.fault == Fault::none);
  const auto rule = [&](const std::vector<std::string>& argv) {
    return decide(table.view, OwnedRequest{id(1), id(1), argv}).rule;
  };
  CHECK(rule({"a", "5"}) == 0);
  CHECK(rule({"b", "5", "x", "y"}) == 1);
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"5"},
                                               {"a"},
                                               {"", "a", "5"},
                                               {"b", "a", "5"},
                                               {"a", "", "5"},
                                               {"a", "5", ""},
                                               {"5", "x", "y"},
                                               {"x", "y"},
                                               {"y"},
                                               {"b", "b", "5", "x", "y"},
                                               {"b", "5", "x"},
                                               {"b", "5", "x", "y", "z"}})
    CHECK(rule(argv) == blob::kNone);
}

TEST_CASE("the hash of the index is docs/format.md's: known answers for every way its length can fall") {
  std::uint8_t text[64];
  for (std::size_t i = 0; i < sizeof text; ++i) text[i] = static_cast<std::uint8_t>(i + 1);
  const std::pair<std::size_t, std::uint64_t> answers[] = {
      {0, 0xe18485764ba03644},  {1, 0x664f744d9ce908a8},  {7, 0xcce77212de98b4fd},  {8, 0x919e248e229db2b7},
      {15, 0x10470af4bf06b03e}, {16, 0x7b23465b363f2ab6}, {17, 0x547de0188c07fb48}, {24, 0x6a2fcd4e446f4d8b},
      {31, 0x1f3f891c1d3719c3}, {32, 0x4b5d9d0411020c67}, {33, 0xb62dae929f305aea}, {64, 0xbd318eb4623a3d8f},
  };
  for (const auto& answer : answers)
    CHECK_MESSAGE(hash_bytes(0x243f6a8885a308d3, {text, answer.first}) == answer.second, answer.first);
  CHECK(hash_pair(text) == 0x4bc56c003757cc47);
}
