#include "policyc/lower.hpp"

#include <doctest/doctest.h>

#include "policyc/emit.hpp"
#include "schema/blob_format.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;
using policyc::lower;

TEST_CASE("an empty policy is a root and nothing else") {
  const policyc::Trie trie = lower(policy({}));
  CHECK(trie.positions.size() == 1);
  CHECK(open_policy(policy({})).fault == Fault::none);
}

TEST_CASE("shared beginnings are stored once") {
  const policyc::Trie trie = lower(policy({entry(1, 1, {{"a", "b", "c"}, {"a", "b", "d"}, {"a", "x"}})}));
  CHECK(trie.positions.size() == 1 + 1 + 1 + 2 + 2);
  CHECK(trie.rule_positions == std::vector<std::uint32_t>{5, 6, 4});
}

TEST_CASE("the order of entries changes rule numbers, not the shape of the trie") {
  const policyc::Trie one = lower(policy({entry(1, 1, {{"a"}, {"b", "<INT>"}}), entry(2, 1, {{"c"}})}));
  const policyc::Trie two = lower(policy({entry(2, 1, {{"c"}}), entry(1, 1, {{"b", "<INT>"}, {"a"}})}));
  REQUIRE(one.positions.size() == two.positions.size());
  for (std::size_t i = 0; i < one.positions.size(); ++i) {
    CHECK(one.positions[i].label == two.positions[i].label);
    CHECK(one.positions[i].parent == two.positions[i].parent);
  }
  CHECK(one.rule_positions != two.rule_positions);
}

TEST_CASE("sixteen live positions are compiled, seventeen are refused with the rule that is too much") {
  std::vector<std::vector<std::string>> argvs;
  std::string prefix;
  for (int i = 0; i < 16; ++i, prefix += "/a") argvs.push_back({"get", prefix + "<URL_PATH>"});
  CHECK_FALSE(lower(policy({entry(1, 1, argvs)})).too_ambiguous.has_value());
  CHECK(open_policy(policy({entry(1, 1, argvs)})).fault == Fault::none);
  argvs.push_back({"get", prefix + "<URL_PATH>"});
  const policyc::Trie trie = lower(policy({entry(1, 1, {{"ls"}}), entry(1, 1, argvs), entry(1, 1, {{"ps"}})}));
  REQUIRE(trie.too_ambiguous.has_value());
  CHECK(*trie.too_ambiguous == 17);
  CHECK(open_policy(policy({entry(1, 1, argvs)})).fault == Fault::bad_width);
}
