// What stops a subcommand, in one line that a person can act on. Thrown anywhere, caught once in main.
#pragma once

#include <stdexcept>
#include <string>

namespace x0x::policyc {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;  // the input was read and found wrong
inline constexpr int kExitUsage = 2;    // the command line, or the operating system

struct UserError : std::runtime_error {
  explicit UserError(const std::string& message, int code = kExitUsage)
      : std::runtime_error(message), exit_code(code) {}
  int exit_code;
};

}  // namespace x0x::policyc
