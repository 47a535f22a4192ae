#include "policyc/lower.hpp"

#include <doctest/doctest.h>

#include "policyc/emit.hpp"
#include "schema/blob_format.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;
using policyc::lower;

namespace {

// One more than a pair may have when `count` is kMaxShapes + 1.
std::vector<std::vector<std::string>> shapes(std::size_t count) {
  std::vector<std::vector<std::string>> argvs;
  for (std::size_t i = 0; i < count; ++i) argvs.push_back({"get", std::string(i, 'x') + "<URL_PATH>"});
  return argvs;
}

}  // namespace

TEST_CASE("an empty policy has no pair and no shape") {
  const policyc::Lowered lowered = lower(policy({}));
  CHECK(lowered.pairs.empty());
  CHECK(lowered.shapes.empty());
  CHECK(open_policy(policy({})).fault == Fault::none);
}

TEST_CASE("pieces are the fixed bytes of each token and a NUL") {
  const policyc::Lowered lowered = lower(policy({entry(1, 1, {{"a", "<INT>", "h:1<URL_PATH>", ""}})}));
  CHECK(lowered.rules[0].pieces == std::string("a\0\0h:1/\0\0", 9));
  REQUIRE(lowered.shapes.size() == 1);
  CHECK(lowered.shapes[0].argc == 4);
  CHECK(lowered.shapes[0].templates == std::vector<policyc::LoweredTemplate>{{1, 0}, {2, 4}});
}

TEST_CASE("rules that differ only in their texts share a shape, also across entries of a pair") {
  const policyc::Lowered lowered = lower(policy({entry(1, 1, {{"a", "b"}, {"c", "d"}, {"a", "<INT>"}}),
                                                 entry(2, 1, {{"a", "b"}}), entry(1, 1, {{"e", "f"}, {"g"}})}));
  CHECK(lowered.entry_pairs == std::vector<std::uint32_t>{0, 1, 0});
  REQUIRE(lowered.shapes.size() == 4);  // g | a b, a <INT> | and the other pair's
  CHECK(lowered.pairs[0].shape_count == 3);
  CHECK(lowered.pairs[1].first_shape == 3);
  CHECK(lowered.first_rules == std::vector<std::uint32_t>{5, 0, 2, 3});
  std::vector<std::uint32_t> used;
  for (const policyc::LoweredRule& rule : lowered.rules) used.push_back(rule.shape);
  CHECK(used == std::vector<std::uint32_t>{1, 1, 2, 3, 1, 0});
}

TEST_CASE("the order of commands changes rule numbers, not the shapes of a pair") {
  const policyc::Lowered one = lower(policy({entry(1, 1, {{"a"}, {"b", "<INT>"}, {"c", "d"}})}));
  const policyc::Lowered two = lower(policy({entry(1, 1, {{"c", "d"}, {"b", "<INT>"}, {"a"}})}));
  CHECK(one.shapes == two.shapes);
  CHECK(one.first_rules != two.first_rules);
}

TEST_CASE("as many shapes as a pair may have are compiled, one more is refused with the rule that is too much") {
  const auto most = shapes(blob::kMaxShapes), more = shapes(blob::kMaxShapes + 1);
  CHECK_FALSE(lower(policy({entry(1, 1, most)})).one_too_many.has_value());
  const policyc::Lowered lowered = lower(policy({entry(1, 1, {more[0]}), entry(1, 1, more), entry(1, 1, {{"ps"}})}));
  REQUIRE(lowered.one_too_many.has_value());
  CHECK(*lowered.one_too_many == blob::kMaxShapes + 1);
}
