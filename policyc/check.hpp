// Checks that need the whole policy. tests/policyc/check_test.cpp.
#pragma once

#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

// A command is shadowed when an earlier one of the same pair matches every argv that it matches, token by
// token. Costs about one hash lookup per token, however many commands a pair has.
void check_shadowing(const Policy& policy, Diagnostics& diagnostics);

}  // namespace x0x::policyc
