// Whole files into memory, with a bound on how much. Errors are one line and name the file.
//
// tests/policyc/atomic_file_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policyc/secret.hpp"

namespace x0x::policyc {

// Reads a file, pipe or device to its end. Refuses a directory, and a file of more than `max_bytes`.
std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

// The same into secret memory.
SecretBytes read_secret_file(const std::string& path, std::size_t max_bytes);

}  // namespace x0x::policyc
