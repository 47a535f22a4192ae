// Policy -> pairs, shapes and patterns: the parts of a table that decide, sorted and numbered as the table needs them.
//
// A rule's pattern is its fixed bytes, token by token; its shape is the rest: which tokens are templates. How an author
// arranged the file changes neither. tests/policyc/lower_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::policyc {

// Where a record stands in its group: see docs/format.md.
struct LoweredPlace {
  std::uint32_t tag = 0, start = 0;
};

struct LoweredPair {
  std::string key;  // agent id, machine id
  LoweredPlace place;
  std::uint32_t first_shape = 0, shape_count = 0;
};

struct LoweredShape {
  std::string templates;  // as the table holds them: 8 bytes each, the last first
  std::uint32_t first_pattern = 0, pattern_count = 0;
};

struct LoweredPattern {
  std::string pieces;  // of each token, and a NUL
  LoweredPlace place;
  std::uint32_t rule = 0;  // the first that has it
};

struct LoweredRule {
  std::uint32_t entry = 0, pattern = 0;
};

struct Lowered {
  std::vector<LoweredPair> pairs;
  std::vector<LoweredShape> shapes;
  std::vector<LoweredPattern> patterns;
  std::vector<std::uint32_t> entry_pairs;  // of each entry
  std::vector<LoweredRule> rules;
  std::optional<std::uint32_t> one_too_many;  // the rule that gives its pair more shapes than a table may hold
  // The last of more rules, or entries, than one slot may hold: their texts were picked to have such hashes.
  std::optional<std::uint32_t> crowded_rule, crowded_entry;
};

Lowered lower(const Policy& policy);

}  // namespace x0x::policyc
