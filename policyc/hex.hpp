// Bytes as lower-case hexadecimal digits.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>

namespace x0x::policyc {

inline std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

}  // namespace x0x::policyc
