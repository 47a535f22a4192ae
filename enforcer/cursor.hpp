// The one place where bytes become numbers.
//
// A Cursor compares what is asked for with what is left (`n > rest.size()`), so no offset is ever added to
// and nothing can wrap. After the first failure it stays failed and yields zeroes; callers check once, at the
// end of a run of reads. Shown by tests/enforcer/cursor_test.cpp.
#pragma once

#include <cstdint>

#include "enforcer/fault.hpp"

namespace x0x {

// Little-endian loads for bytes whose presence has been checked. Compilers turn each into one move.
constexpr std::uint32_t load_u32(const std::uint8_t* p) {
  return std::uint32_t{p[0]} | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[3]} << 24;
}
constexpr std::uint64_t load_u64(const std::uint8_t* p) {
  return std::uint64_t{load_u32(p)} | std::uint64_t{load_u32(p + 4)} << 32;
}

class Cursor {
 public:
  explicit constexpr Cursor(Bytes bytes) : rest_(bytes) {}

  // The next n bytes, or nothing and failure.
  constexpr Bytes take(std::uint64_t n) {
    if (n > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const Bytes taken = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return taken;
  }
  constexpr std::uint8_t u8() {
    const Bytes b = take(1);
    return b.empty() ? std::uint8_t{0} : b[0];
  }
  constexpr std::uint32_t u32() {
    const Bytes b = take(4);
    return b.empty() ? 0 : load_u32(b.data());
  }
  constexpr std::uint64_t u64() {
    const Bytes b = take(8);
    return b.empty() ? 0 : load_u64(b.data());
  }

  constexpr bool failed() const { return failed_; }
  constexpr bool at_end() const { return !failed_ && rest_.empty(); }
  constexpr std::size_t left() const { return rest_.size(); }

 private:
  Bytes rest_;
  bool failed_ = false;
};

}  // namespace x0x
