// JSON text in a fixed room: one line of plain ASCII, whatever the values hold.
//
// Control bytes and everything beyond ASCII are written as \u escapes, a byte that is not UTF-8 as \ufffd, so no
// terminal sequence, bidirectional mark or newline reaches a log or a screen. A text is cut off at kMaxJsonText, so
// that nothing a policy or a request holds makes a record too long. What does not fit sets full() and is dropped. Shown
// by tests/enforcer/json_test.cpp.
#pragma once

#include <charconv>
#include <utility>

#include "enforcer/system.hpp"
#include "enforcer/text.hpp"

namespace x0x {

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline constexpr std::size_t kMaxJsonText = 64u << 10;  // bytes, before they are escaped

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
  void raw(std::string_view text) {
    full_ = full_ || text.size() > room_.size() - used_;
    if (full_) return;
    std::ranges::copy(text, room_.data() + used_);
    used_ += text.size();
  }

  // Up to the next %; returns what follows it.
  const char* copy(const char* format) {
    for (; *format != '\0' && *format != '%'; ++format) raw({*format == '\'' ? "\"" : format, 1});
    return *format == '%' ? format + 1 : format;
  }

  void value(std::integral auto number) {
    char digits[20];
    if constexpr (std::same_as<decltype(number), bool>)
      raw(number ? "true" : "false");
    else
      raw(std::cmp_less(number, 0) ? "null" : std::string_view(digits, std::to_chars(digits, digits + 20, number).ptr));
  }
  void value(std::string_view text) { value(as_bytes(text)); }

  void value(Bytes text) {
    if (text.data() == nullptr) return raw("null");
    text = text.first(std::min(text.size(), kMaxJsonText));
    raw("\"");
    for (std::size_t i = 0, length = 0; i < text.size() && !full_; i += std::max<std::size_t>(length, 1)) {
      length = utf8_length(text, i);
      std::uint32_t code = text[i] & (0x7fu >> std::countl_one(text[i]));
      for (std::size_t k = 1; k < length; ++k) code = code << 6 | (text[i + k] & 0x3fu);
      if (length == 0) code = 0xfffd;
      if (code >= 0x10000) {
        digits("\\u", 0xd7c0 + (code >> 10), 4);
        code = 0xdc00 + (code & 0x3ff);
      }
      if (code == '"' || code == '\\') raw("\\");
      code >= 0x20 && code < 0x7f ? raw(as_text(text.subspan(i, 1))) : digits("\\u", code, 4);
    }
    raw("\"");
  }

  void value(Hex hex) {
    if (hex.bytes.data() == nullptr) return raw("null");
    raw("\"");
    for (std::size_t i = 0; i < hex.bytes.size(); ++i) {
      const bool dash = hex.bytes.size() == 16 && i >= 4 && i <= 10 && i % 2 == 0;
      digits(dash ? "-" : "", hex.bytes[i], 2);
    }
    raw("\"");
  }

  void value(Time time) {
    const std::uint64_t milliseconds = static_cast<std::uint64_t>(time);
    const time_t seconds = static_cast<time_t>(milliseconds / 1000);
    tm utc{};
    char stamp[32];
    const std::size_t n = strftime(stamp, sizeof stamp, "%FT%T", gmtime_r(&seconds, &utc));
    snprintf(stamp + n, sizeof stamp - n, ".%03uZ", static_cast<unsigned>(milliseconds % 1000));
    value(milliseconds == 0 ? std::string_view() : stamp);
  }

  void digits(std::string_view before, std::uint32_t number, unsigned count) {
    raw(before);
    while (count-- > 0) raw({&"0123456789abcdef"[number >> (4 * count) & 15], 1});
  }

  std::span<char> room_;
  std::size_t used_ = 0;
  bool full_ = false;
};

}  // namespace x0x
