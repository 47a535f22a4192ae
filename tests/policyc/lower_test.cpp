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

// As the table holds them: the last template first.
std::string templates(const std::vector<blob::Template>& records) {
  std::string bytes;
  for (const blob::Template& t : records)
    for (const std::uint32_t number : {t.piece_bytes, t.after})
      for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

}  // namespace

TEST_CASE("an empty policy has no pair and no shape") {
  const policyc::Lowered lowered = lower(policy({}));
  CHECK(lowered.pairs.empty());
  CHECK(lowered.shapes.empty());
  CHECK(open_policy(policy({})).fault == Fault::none);
}

TEST_CASE("pieces are the fixed bytes of each token and a NUL") {
  const policyc::Lowered lowered = lower(policy({entry(1, 1, {{"a", "<INT>", "b", "h:1<URL_PATH>", ""}})}));
  CHECK(lowered.patterns[0].pieces == std::string("a\0\0b\0h:1/\0\0", 11));
  REQUIRE(lowered.shapes.size() == 1);
  CHECK(lowered.shapes[0].templates == templates({{4, 1}, {0, 1}}));
}

TEST_CASE("rules that differ only in their texts share a shape, also across entries of a pair") {
  const policyc::Lowered lowered =
      lower(policy({entry(1, 1, {{"a", "b"}, {"c", "d"}, {"a", "<INT>"}}), entry(2, 1, {{"a", "b"}}),
                    entry(1, 1, {{"e", "f"}, {"g"}, {"a", "b"}})}));
  REQUIRE(lowered.pairs.size() == 2);
  CHECK(lowered.entry_pairs[0] == lowered.entry_pairs[2]);
  CHECK(lowered.entry_pairs[0] != lowered.entry_pairs[1]);
  const policyc::LoweredPair& pair = lowered.pairs[lowered.entry_pairs[0]];
  REQUIRE(pair.shape_count == 2);
  const policyc::LoweredShape &literal = lowered.shapes[pair.first_shape],
                              &number = lowered.shapes[pair.first_shape + 1];
  CHECK(literal.templates == "");
  CHECK(literal.pattern_count == 4);  // `a b` once
  CHECK(number.templates == templates({{0, 0}}));
  CHECK(number.pattern_count == 1);
  CHECK(lowered.rules[6].pattern == lowered.rules[0].pattern);
  CHECK(lowered.rules[3].pattern != lowered.rules[0].pattern);  // the other pair's
  for (const std::size_t rule : {0u, 1u, 4u, 5u})
    CHECK(lowered.rules[rule].pattern - literal.first_pattern < literal.pattern_count);
  CHECK(lowered.rules[2].pattern == number.first_pattern);
  CHECK(lowered.patterns[lowered.rules[6].pattern].rule == 0);
}

TEST_CASE("pairs, and the patterns of a shape, are sorted by tag, and know where slots start") {
  std::vector<std::vector<std::string>> argvs;
  for (int i = 0; i < 100; ++i) argvs.push_back({"run", std::to_string(i)});
  std::vector<policyc::Entry> entries;
  for (std::uint8_t i = 0; i < 100; ++i) entries.push_back(entry(i, 1, argvs));
  const policyc::Lowered lowered = lower(policy(entries));
  const auto check = [](const auto* group, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) REQUIRE(group[i - 1].place.tag < group[i].place.tag);
      std::size_t start = 0;
      while (start < count && std::uint64_t{group[start].place.tag} * count >> 32 < i) ++start;
      REQUIRE(group[i].place.start == start);
    }
  };
  check(lowered.pairs.data(), 100);
  for (const policyc::LoweredShape& shape : lowered.shapes)
    check(lowered.patterns.data() + shape.first_pattern, shape.pattern_count);
}

TEST_CASE("the order of commands changes rule numbers, not pairs, shapes and patterns") {
  const policyc::Lowered one = lower(policy({entry(1, 1, {{"a"}, {"b", "<INT>"}, {"c", "d"}}), entry(2, 1, {{"a"}})}));
  const policyc::Lowered two = lower(policy({entry(2, 1, {{"a"}}), entry(1, 1, {{"c", "d"}, {"b", "<INT>"}, {"a"}})}));
  REQUIRE(one.patterns.size() == two.patterns.size());
  for (std::size_t i = 0; i < one.patterns.size(); ++i) CHECK(one.patterns[i].pieces == two.patterns[i].pieces);
  for (std::size_t i = 0; i < one.pairs.size(); ++i) CHECK(one.pairs[i].key == two.pairs[i].key);
  CHECK(one.rules[0].pattern == two.rules[3].pattern);
}

TEST_CASE("as many shapes as a pair may have are compiled, one more is refused with the rule that is too much") {
  const auto most = shapes(blob::kMaxShapes), more = shapes(blob::kMaxShapes + 1);
  CHECK_FALSE(lower(policy({entry(1, 1, most)})).one_too_many.has_value());
  const policyc::Lowered lowered = lower(policy({entry(1, 1, {more[0]}), entry(1, 1, more), entry(1, 1, {{"ps"}})}));
  REQUIRE(lowered.one_too_many.has_value());
  CHECK(*lowered.one_too_many == blob::kMaxShapes + 1);
}
