// A TOML syntax error, told as one of ours. tests/policyc/toml_error_test.cpp.
#pragma once

#include <toml++/toml.h>

#include "policyc/diagnostic.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

void report_toml_error(const Source& source, const toml::parse_error& error, Diagnostics& diagnostics);

}  // namespace x0x::policyc
