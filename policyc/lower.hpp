// Policy -> shapes and pieces: the parts of a table that decide, numbered as the table needs them.
//
// A rule's pieces are its fixed bytes, token by token; its shape is the rest: how many tokens, and which are templates.
// A pair's shapes are sorted, so they are the same however the author arranged the file. tests/policyc/lower_test.cpp.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::policyc {

struct LoweredTemplate {
  std::uint32_t token;
  std::uint32_t piece_bytes;  // 0: <INT>; otherwise <URL_PATH> after this many fixed bytes
  auto operator<=>(const LoweredTemplate&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0
};

struct LoweredShape {
  std::uint32_t argc = 0;
  std::vector<LoweredTemplate> templates;
  auto operator<=>(const LoweredShape&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0
};

struct LoweredPair {
  std::string key;  // agent id, machine id
  std::uint32_t first_shape = 0, shape_count = 0;
};

struct LoweredRule {
  std::uint32_t entry = 0, shape = 0;
  std::string pieces;  // of each token, and a NUL
};

struct Lowered {
  std::vector<LoweredPair> pairs;  // in order of first appearance
  std::vector<LoweredShape> shapes;
  std::vector<std::uint32_t> first_rules;  // of each shape
  std::vector<std::uint32_t> entry_pairs;  // of each entry
  std::vector<LoweredRule> rules;
  std::optional<std::uint32_t> one_too_many;  // the rule that gives its pair more shapes than a table may hold
};

Lowered lower(const Policy& policy);

}  // namespace x0x::policyc
