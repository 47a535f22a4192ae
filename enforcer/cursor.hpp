// The one place where bytes become numbers.
//
// A Cursor compares what is asked for with what is left (`n > rest.size()`), so no offset is ever added to
// and nothing can wrap. After the first failure it stays failed and yields zeroes; callers check once, at the
// end of a run of reads. Shown by tests/enforcer/cursor_test.cpp.
#pragma once

#include <bit>
#include <cstring>

#include "enforcer/fault.hpp"

namespace x0x {

// For bytes whose presence has been checked. Every format is little-endian, and so is every machine we build for: a
// record whose fields stand in the order of its bytes is read as it is, wherever it lies. (A copy by memcpy says the
// same, and GCC then copies the whole record for one field.)
static_assert(std::endian::native == std::endian::little);
template <class T>
T load(const std::uint8_t* p) {
  struct [[gnu::packed, gnu::may_alias]] Stored {
    T value;
  };
  return reinterpret_cast<const Stored*>(p)->value;
}
inline std::uint32_t load_u32(const std::uint8_t* p) { return load<std::uint32_t>(p); }
inline std::uint64_t load_u64(const std::uint8_t* p) { return load<std::uint64_t>(p); }

class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes) {}

  // The next n bytes, or nothing and failure.
  Bytes take(std::uint64_t n) {
    if (n > rest_.size()) return fail();
    const Bytes taken = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return taken;
  }
  // For what is there but must not be.
  Bytes fail() {
    failed_ = true;
    return rest_ = {};
  }
  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }

  bool failed() const { return failed_; }
  bool at_end() const { return !failed_ && rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

 private:
  template <class T>
  T number() {
    const Bytes bytes = take(sizeof(T));
    return bytes.empty() ? T{0} : load<T>(bytes.data());
  }

  Bytes rest_;
  bool failed_ = false;
};

}  // namespace x0x
