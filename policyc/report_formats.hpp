// Diagnostics for programs: JSON, SARIF 2.1.0 and GitHub workflow commands.
// tests/policyc/report_formats_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/diagnostic.hpp"

namespace x0x::policyc {

// What became of one file.
struct FileReport {
  std::string file;
  Diagnostics diagnostics;
  std::string unreadable;  // why it could not be read; empty when it was
};

// Takes the text piece by piece.
using Sink = std::function<void(std::string_view)>;

void write_json(const std::vector<FileReport>& reports, const Sink& sink);
void write_sarif(const std::vector<FileReport>& reports, const Sink& sink);
void write_github(const std::vector<FileReport>& reports, const Sink& sink);

}  // namespace x0x::policyc
