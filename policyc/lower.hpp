// Policy -> trie: every rule becomes a path of tokens below its (agent, machine) pair, in the order the table
// needs.
//
// Level by level, the children of one parent side by side and sorted: the shape is the same however the
// author arranged the file. tests/policyc/lower_test.cpp shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::policyc {

struct TriePosition {
  std::uint32_t parent = 0;
  std::uint8_t kind = 0;
  std::string label;
  std::uint32_t rule = 0xffffffff;  // first rule that ends here
  std::uint32_t pair = 0;
  std::uint8_t templates = 0;
  std::uint32_t width = 1;
};

struct Trie {
  std::vector<TriePosition> positions;         // positions[0] is the root
  std::vector<std::uint32_t> rule_positions;   // where each rule ends
  std::vector<std::uint32_t> entry_pairs;      // the pair position of each entry
  std::optional<std::uint32_t> too_ambiguous;  // a rule below a position whose width no table may have
};

Trie lower(const Policy& policy);

}  // namespace x0x::policyc
