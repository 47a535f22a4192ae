// A whole policy as JSON, with nothing left out, and as TOML that compiles to the same payload.
//
// tests/policyc/policy_json_test.cpp, tests/policyc/decompile_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "policyc/policy.hpp"

namespace x0x::policyc {

nlohmann::ordered_json policy_json(const Policy& policy);
std::string policy_toml(const Policy& policy);

// A token as it stands in an argv array.
std::string token_source(const Token& token);

}  // namespace x0x::policyc
