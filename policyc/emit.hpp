// Policy and what was lowered from it -> payload: the only writer of the bytes that docs/format.md specifies.
//
// The same policy gives the same bytes on every machine: corpus/golden holds their digests (tests/policyc/cli_test.py).
// tests/enforcer/decide_test.cpp opens and uses what it writes.
#pragma once

#include <cstdint>
#include <vector>

#include "policyc/lower.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

std::vector<std::uint8_t> emit(const Policy& policy, const Lowered& lowered);

// lower and emit in one step, for a policy that is known to be within the table's bounds.
std::vector<std::uint8_t> emit(const Policy& policy);

}  // namespace x0x::policyc
