// Where front ends reach the enforcer: its own socket, or one that systemd holds for it.
//
// A socket file nobody listens on is replaced; a live one, and anything that is not a socket, is left alone.
// Shown by tests/enforcer/endpoint_test.cpp.
#pragma once

#include <string_view>

#include "enforcer/fault.hpp"

namespace x0x {

inline constexpr int kActivatedSocket = 3;  // systemd's own agreement

// Closes every descriptor we were not meant to have, and opens 0-2 where they are missing. True: systemd
// passed a listening socket.
bool close_inherited();

int probe_socket(const char* path);             // 0: somebody listens; otherwise an errno
Fault claim_socket(const char* path, int& fd);  // mode 0600, non-blocking
void notify_systemd(std::string_view state);

}  // namespace x0x
