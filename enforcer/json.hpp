// JSON text in a fixed room: one line of plain ASCII, whatever the values hold.
//
// Control bytes and everything beyond ASCII are written as \u escapes, a byte that is not UTF-8 as \ufffd, so no
// terminal sequence, bidirectional mark or newline reaches a log or a screen. Text that does not fit sets full() and is
// dropped. Shown by tests/enforcer/json_test.cpp.
#pragma once

#include <concepts>

#include "enforcer/system.hpp"
#include "enforcer/text.hpp"

namespace x0x {

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Bytes as digits; 16 of them as a UUID; none at all as null.
struct Hex {
  Bytes bytes;
};
enum class Time : std::uint64_t {};  // Unix milliseconds, as RFC 3339 in UTC; 0 as null

class Json {
 public:
  explicit Json(std::span<char> room) : room_(room) {}

  // write("{'name':%,'size':%}", name, size): ' stands for a double quote and % for the next value. Absent text and
  // negative numbers are null.
  template <class... Values>
  Json& write(const char* format, const Values&... values) {
    (..., (format = copy(format), value(values)));
    copy(format);
    return *this;
  }

  bool full() const { return full_; }
  std::string_view view() const { return {room_.data(), used_}; }

 private:
  const char* copy(const char* format);  // up to the next %; returns what follows it
  void value(Bytes text);
  void value(std::string_view text) { value(as_bytes(text)); }
  void value(Hex hex);
  void value(Time time);
  void value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>)
      raw(number ? "true" : "false");
    else
      std::signed_integral<decltype(number)>&& number < 1 && number != 0 ? raw("null") : natural(std::uint64_t(number));
  }
  void natural(std::uint64_t number);
  void raw(std::string_view text);
  void digits(std::uint64_t number, unsigned count);

  std::span<char> room_;
  std::size_t used_ = 0;
  bool full_ = false;
};

}  // namespace x0x
