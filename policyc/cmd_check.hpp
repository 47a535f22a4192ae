// `x0x-policyc check`: validates policy files and prints what is wrong with them.
// tests/policyc/cmd_check_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

enum class ReportFormat { human, json, sarif, github };

// What later stages have to say about a policy that parsed: its examples, its table.
using BackEnd = std::function<void(const Source&, const Policy&, Diagnostics&)>;

struct CheckOptions {
  std::vector<std::string> files;  // `-` is standard input
  ReportFormat format = ReportFormat::human;
  bool strict = false;
  BackEnd back_end;  // may be empty
};

// Human reports go to standard error, the others to standard output.
// 0: no errors; 1: errors; 2: a file could not be read, or `-` was given twice. Every readable file is
// checked.
int run_check(const CheckOptions& options);

// Whether diagnostics on this stream should be coloured: a terminal, NO_COLOR unset, TERM not `dumb`.
bool wants_colour(int descriptor);

}  // namespace x0x::policyc
