// The command's input, read whole before anything is asked: it travels inside the request.
//
// tests/client/input_test.cpp.
#pragma once

#include <string>

#include "client/codec.hpp"

namespace x0x::client {

// `-` is our own stdin. Failure when it cannot be read or cannot fit into a request.
std::string read_input(const std::string& file);

// Failure when the request is longer than a message may be; says what to shorten.
void check_size(const Session& session, const Request& request);

}  // namespace x0x::client
