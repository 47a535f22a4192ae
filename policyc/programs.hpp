// Programs that run other programs: what the danger lint knows. tests/policyc/lint_test.cpp.
#pragma once

#include <string_view>

namespace x0x::policyc {

// The last part of a path.
std::string_view base_name(std::string_view path);

// Whether it can start other programs; versions are looked through, so `python3.11` is `python`.
bool runs_programs(std::string_view program);

// Whether `argument` makes this interpreter run code from its command line: `-c` of sh, `-e` of perl.
bool takes_code(std::string_view program, std::string_view argument);

}  // namespace x0x::policyc
