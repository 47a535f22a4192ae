// Shows what the enforcer says about itself: its running sessions and its counters.
//
// Keys that are missing or of another type are left out, never guessed; texts are shown with their control
// characters escaped. tests/client/inspect_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "client/options.hpp"

namespace x0x::client {

// The text for stdout, newline included. Failure when the document is not JSON.
std::string show_sessions(std::string_view document, Format format);
std::string show_diagnostics(std::string_view document, Format format);

}  // namespace x0x::client
