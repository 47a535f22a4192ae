// A table written out: the dump that golden tests compare, and a complete JSON document.
#pragma once

#include <string>
#include <vector>

#include "policyc/load_policy.hpp"
#include "policyc/minisign.hpp"

namespace x0x::policyc {

std::string inspect_human(const LoadedPolicy& loaded, const std::vector<Signature>& signatures);
std::string inspect_json(const LoadedPolicy& loaded, const std::vector<Signature>& signatures);

}  // namespace x0x::policyc
