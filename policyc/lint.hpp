// Commands that are valid and still dangerous to allow. All of these are warnings.
//
// A `reason` answers the lints about programs that run other programs. tests/policyc/lint_test.cpp.
#pragma once

#include <string_view>

#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

// Where the parts of a command stand that a Command does not remember.
struct CommandSites {
  Span exe{}, cwd{};
};

void lint_command(const Command& command, const CommandSites& sites, Diagnostics& diagnostics);

// A path in a directory that everybody can write to. `what` is the key it belongs to.
void lint_path(std::string_view what, std::string_view path, Span span, Diagnostics& diagnostics);

}  // namespace x0x::policyc
