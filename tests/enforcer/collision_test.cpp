// The index hashes fast, not safely: whoever sends requests can make two keys meet in it. Only the comparison decides.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>

#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;
using wire::DenialReason;

TEST_CASE("an agent id made to have the hash of another is still a stranger") {
  // A word that equals the hash's own constant wipes out the word that follows it.
  policyc::Id known{};
  for (std::size_t i = 0; i < 8; ++i) known[i] = static_cast<std::uint8_t>(blob::kHashFirst >> (8 * i));
  policyc::Id forged = known;
  forged[8] = 1;
  std::uint8_t keys[2][blob::kPairBytes] = {};
  std::copy(known.begin(), known.end(), keys[0]);
  std::copy(forged.begin(), forged.end(), keys[1]);
  REQUIRE(hash_bytes(blob::kHashPair, keys[0]) == hash_bytes(blob::kHashPair, keys[1]));

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
  CHECK(decide(both.view, OwnedRequest{forged, {}, {"uptime"}}).rule == 1);
}

// The hash multiplies its first two words, each changed by a constant, and a product does not tell its factors apart:
// with the constants taken into account the words can change places. All of it can be plain text.
std::pair<std::string, std::string> colliding_words() {
  const auto plain = [](std::uint64_t c) { return c < 0x7f && std::isalnum(static_cast<int>(c)) != 0; };
  for (std::size_t size = 18;; ++size) {
    const std::uint64_t change = (size * blob::kHashLength) ^ blob::kHashFirst;  // for the pair's first shape, number 0
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

// A pair and a rule share the index. This key and this command were searched for: they have one tag and one home in an
// index of up to 256 slots, so a lookup of either meets the other.
policyc::Id agent_that_meets_a_rule() {
  policyc::Id agent{};
  for (std::size_t i = 0; i < 4; ++i) agent[i] = static_cast<std::uint8_t>(31405u >> (8 * i));
  return agent;
}
const std::string kRuleThatMeetsAPair = "n440617";

TEST_CASE("a pair is not taken for a rule, nor a rule for a pair, where their hashes meet") {
  const policyc::Id agent = agent_that_meets_a_rule();
  std::uint8_t key[blob::kPairBytes] = {};
  std::copy(agent.begin(), agent.end(), key);
  const std::uint64_t of_pair = hash_bytes(blob::kHashPair, key),
                      of_rule = hash_bytes(0, bytes(kRuleThatMeetsAPair + '\0'));
  REQUIRE((of_pair >> 32) == (of_rule >> 32));
  REQUIRE((of_pair % 256) == (of_rule % 256));

  policyc::Policy pair_only = policy({entry(0, 0, {{"x"}})});
  pair_only.entries[0].agent = agent;
  const OpenTable with_pair = open_policy(pair_only);
  REQUIRE(with_pair.fault == Fault::none);
  CHECK(decide(with_pair.view, OwnedRequest{agent, {}, {kRuleThatMeetsAPair}}).reason ==
        DenialReason::argv_not_allowed);

  // The rule is the last of many short ones: as the number of a pair its own would lie outside the table.
  std::vector<std::vector<std::string>> argvs;
  for (char first = 'a'; first <= 'z'; ++first)
    for (const char* rest : {"", "1", "2", "3"}) argvs.push_back({first + std::string(rest)});
  argvs.push_back({kRuleThatMeetsAPair});
  const OpenTable with_rule = open_policy(policy({entry(1, 1, argvs)}));
  REQUIRE(with_rule.fault == Fault::none);
  CHECK(decide(with_rule.view, OwnedRequest{agent, {}, {"x"}}).reason == DenialReason::agent_machine_not_in_acl);

  pair_only.entries[0].commands.push_back(command({kRuleThatMeetsAPair}));
  const OpenTable with_both = open_policy(pair_only);
  REQUIRE(with_both.fault == Fault::none);
  CHECK(decide(with_both.view, OwnedRequest{agent, {}, {kRuleThatMeetsAPair}}).rule == 1);
}

TEST_CASE("a rule of another shape is not taken for one with the same text where their hashes meet") {
  // The fixed bytes of `x16hmhf <INT>` and of `x16hmhf` with an empty token are the same. The name was searched for: it
  // has one tag and one home under both shapes.
  const std::string name = "x16hmhf";
  const std::uint64_t literal = hash_bytes(0, bytes(name + std::string(2, '\0'))),
                      number = hash_bytes(1, bytes(name + '\0'));
  REQUIRE((literal >> 32) == (number >> 32));
  REQUIRE((literal % 8) == (number % 8));
  const OpenTable table = open_policy(policy({entry(1, 1, {{name, ""}, {"other", "<INT>"}})}));
  REQUIRE(table.fault == Fault::none);
  REQUIRE(table.view.header().slot_count == 8);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {name, ""}}).rule == 0);
  CHECK(decide(table.view, OwnedRequest{id(1), id(1), {name, "5"}}).reason == DenialReason::argv_not_allowed);
}

TEST_CASE("the hash of the index is docs/format.md's: known answers for every way its length can fall") {
  std::uint8_t text[64];
  for (std::size_t i = 0; i < sizeof text; ++i) text[i] = static_cast<std::uint8_t>(i + 1);
  const std::pair<std::size_t, std::uint64_t> answers[] = {
      {0, 0xe18485764ba03644},  {1, 0xe28a4add7a2be77b},  {7, 0x2029d33e0056473d},  {8, 0xf2e6e404c1f7e1f5},
      {9, 0x6f2db1d9a1f8d24c},  {16, 0x7b23465b363f2ab6}, {17, 0xc8ba14a4ab9cd6a7}, {24, 0x0f2686ebe3397b7b},
      {25, 0xd891ac41938abd37}, {64, 0xbd318eb4623a3d8f},
  };
  for (const auto& answer : answers)
    CHECK_MESSAGE(hash_bytes(blob::kHashPair, {text, answer.first}) == answer.second, answer.first);
}
