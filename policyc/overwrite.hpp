// Keeps a newer table from being lost under an older one.
//
// tests/policyc/keys_cli_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace x0x::policyc {

// Throws if a table of `version` must not take the place of what is at `path`: a table of a higher version,
// which the nodes may have loaded already, or a file that is no table at all, such as the policy's source.
void check_overwrite(const std::string& path, std::uint64_t version);

}  // namespace x0x::policyc
