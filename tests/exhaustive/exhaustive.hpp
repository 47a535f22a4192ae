// For checks that try everything: tables by the hundred thousand, whose signatures are taken for granted.
#pragma once

#include <cstdlib>

#include "policyc/emit.hpp"
#include "tests/support/table.hpp"

namespace x0x::test {

// `./dev test --exhaustive`
inline bool thorough() { return std::getenv("X0X_EXHAUSTIVE") != nullptr; }

// Opens a payload under a signature of zeroes: these programs are linked so that any signature of a key we know holds.
inline OpenTable open_trusted(const ByteVector& payload) {
  static const TrustedKeys trusted = trust({TestKey(1)}, 1);
  ByteVector record(8 + 64 + 64 + 1, 0);
  std::fill_n(record.begin(), 8, std::uint8_t{1});
  return open_file(assemble(payload, {record}), trusted);
}

}  // namespace x0x::test
