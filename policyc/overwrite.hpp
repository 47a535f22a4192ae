// Keeps a newer table from being lost under an older one.
//
// tests/policyc/keys_cli_test.cpp.
#pragma once

#include <string>

#include "enforcer/blob_view.hpp"

namespace x0x::policyc {

// Throws if `table` must not take the place of what is at `path`: a table of a higher version, which the
// nodes may have loaded already, or a file that is no table at all, such as the policy's source. True: a
// table of the same version but with other content is there, and nodes that loaded it will refuse this one.
bool check_overwrite(const std::string& path, const BlobView& table);

}  // namespace x0x::policyc
