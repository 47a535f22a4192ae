// Passwords from the terminal without echo, or from a file descriptor.
//
// The terminal is put back as it was however the prompt ends: an answer, an error, Ctrl-C, Ctrl-Z, a hang-up.
// tests/policyc/password_test.cpp types into a pseudo-terminal.
#pragma once

#include <cstddef>
#include <string>

#include "policyc/secret.hpp"

namespace x0x::policyc {

inline constexpr std::size_t kMaxPasswordBytes = 1022;  // what the stock minisign reads, without the line break

struct PasswordSource {
  int descriptor = -1;  // its first line; -1: ask on /dev/tty
};

SecretBytes ask_password(const PasswordSource& source, const std::string& prompt);

// A password to remember: on a terminal it is asked twice.
SecretBytes ask_new_password(const PasswordSource& source);

// Deriving a key takes seconds. Says so on the terminal, if standard error is one.
void say_deriving();

}  // namespace x0x::policyc
