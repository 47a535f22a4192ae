// Policy and what was lowered from it -> payload: the only writer of the bytes that docs/format.md specifies.
//
// The same policy gives the same bytes on every machine: corpus/golden holds their digests (tests/policyc/cli_test.py).
// tests/enforcer/decide_test.cpp opens and uses what it writes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "policyc/lower.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

// Thrown for texts that were picked to fall on one slot of the index.
struct CrowdedIndex : std::runtime_error {
  std::uint32_t pair, rule;  // the one that finds no place; the other is blob::kNone
  CrowdedIndex(std::uint32_t p, std::uint32_t r)
      : std::runtime_error("the table's index is too crowded"), pair(p), rule(r) {}
};

std::vector<std::uint8_t> emit(const Policy& policy, const Lowered& lowered);

// lower and emit in one step, for a policy that is known to be within the table's bounds.
std::vector<std::uint8_t> emit(const Policy& policy);

}  // namespace x0x::policyc
