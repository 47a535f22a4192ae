// JSON text in a fixed room: one line of plain ASCII, whatever the values hold.
//
// Commas are put where they are due. Control bytes and everything beyond ASCII are written as \u escapes, a
// byte that is not UTF-8 as \ufffd, so no terminal sequence, bidirectional mark or newline reaches a log or a
// screen. Text that does not fit sets full() and is dropped. Shown by tests/enforcer/json_test.cpp.
#pragma once

#include <string_view>

#include "enforcer/fault.hpp"

namespace x0x {

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Json {
 public:
  explicit Json(std::span<char> room) : room_(room) {}

  Json& begin(char bracket) { return separate().raw({&bracket, 1}); }  // `{` or `[`
  Json& end(char bracket) { return raw({&bracket, 1}); }
  Json& key(std::string_view name) { return text(name).raw(":"); }
  Json& text(Bytes value);
  Json& text(std::string_view value) { return text(as_bytes(value)); }
  Json& number(std::uint64_t value);
  Json& word(std::string_view literal) { return separate().raw(literal); }  // true, false, null
  Json& truth(bool value) { return word(value ? "true" : "false"); }
  Json& hex(Bytes value) { return word("\"").digits(value).raw("\""); }
  Json& uuid(const std::uint8_t* id);           // 16 bytes
  Json& time(std::uint64_t unix_milliseconds);  // RFC 3339, UTC
  Json& raw(std::string_view text);             // as it is, without a comma

  bool full() const { return full_; }
  std::string_view view() const { return {room_.data(), used_}; }

 private:
  Json& separate();
  Json& digits(Bytes value);
  Json& escape(std::uint32_t unit);

  std::span<char> room_;
  std::size_t used_ = 0;
  bool full_ = false;
};

}  // namespace x0x
