// Diagnostics for people: the place, the source line, a caret under the exact characters, and help.
//
// Nothing from the file reaches the terminal unescaped. tests/policyc/render_test.cpp.
#pragma once

#include <string>

#include "policyc/diagnostic.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

inline constexpr std::size_t kMaxShown = 100;  // diagnostics of one file, in the human format

std::string render_human(const Source& source, const Diagnostic& diagnostic, bool colour);

// All of a file's, cut after kMaxShown.
std::string render_human(const Source& source, const Diagnostics& diagnostics, bool colour);

// "2 errors, 1 warning"
std::string count_problems(std::size_t errors, std::size_t warnings);

}  // namespace x0x::policyc
