// Names of environment variables that a policy may not set. tests/policyc/env_names_test.cpp.
#pragma once

#include <string_view>

namespace x0x::policyc {

// [A-Za-z_][A-Za-z0-9_]*
bool is_env_identifier(std::string_view name);

// Why the name must not be set; empty when it may.
std::string_view why_dangerous(std::string_view name);

}  // namespace x0x::policyc
