// JSON text in a fixed room: one line of plain ASCII, whatever the values hold.
//
// Commas are put where they are due. Control bytes and everything beyond ASCII are written as \u escapes, a
// byte that is not UTF-8 as \ufffd, so no terminal sequence, bidirectional mark or newline reaches a log or a
// screen. Text that does not fit sets full() and is dropped. Shown by tests/enforcer/json_test.cpp.
#pragma once

#include <concepts>
#include <string_view>

#include "enforcer/fault.hpp"

namespace x0x {

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// How a value is to be written when its type alone does not say.
struct Hex {
  Bytes bytes;  // absent bytes are null
};
struct Uuid {
  const std::uint8_t* id;  // 16 bytes, or null
};
struct Time {
  std::uint64_t unix_milliseconds;  // as RFC 3339, UTC; 0 as null
};
struct Natural {
  int value;  // negative as null
};

class Json {
 public:
  explicit Json(std::span<char> room) : room_(room) {}

  Json& begin(char bracket) { return separate().raw({&bracket, 1}); }  // `{` or `[`
  Json& end(char bracket) { return raw({&bracket, 1}); }
  Json& colon() { return raw(":"); }
  Json& key(std::string_view name) { return value(name).colon(); }
  Json& value(Bytes text);  // absent text is null
  Json& value(std::string_view text) { return value(as_bytes(text)); }
  Json& value(Hex hex);
  Json& value(Uuid uuid);
  Json& value(Time time);
  Json& value(Natural n) { return n.value < 0 ? word("null") : value(static_cast<unsigned>(n.value)); }
  template <std::unsigned_integral T>
  Json& value(T number) {
    return std::same_as<T, bool> ? word(number ? "true" : "false") : natural(number);
  }
  // fields("a", 1u, "b", "two"): names and values in turn
  template <class T, class... Rest>
  Json& fields(std::string_view name, const T& first, const Rest&... rest) {
    key(name).value(first);
    if constexpr (sizeof...(rest) > 0) fields(rest...);
    return *this;
  }

  bool full() const { return full_; }
  std::string_view view() const { return {room_.data(), used_}; }

 private:
  Json& raw(std::string_view text);
  Json& separate();
  Json& word(std::string_view literal) { return separate().raw(literal); }
  Json& natural(std::uint64_t number);
  Json& digits(Bytes bytes);
  Json& escape(std::uint32_t unit);

  std::span<char> room_;
  std::size_t used_ = 0;
  bool full_ = false;
};

}  // namespace x0x
