// Diagnostics for programs: JSON, SARIF 2.1.0 and GitHub workflow commands.
// tests/policyc/report_formats_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "policyc/diagnostic.hpp"

namespace x0x::policyc {

// What became of one file.
struct FileReport {
  std::string file;
  Diagnostics diagnostics;
  std::string unreadable;  // why it could not be read; empty when it was
};

std::string render_json(const std::vector<FileReport>& reports);
std::string render_sarif(const std::vector<FileReport>& reports);
std::string render_github(const std::vector<FileReport>& reports);

}  // namespace x0x::policyc
