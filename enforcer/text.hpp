// What texts may be made of: forbidden bytes, the two templates, UTF-8; and argv blocks, their tokens one after
// another.
//
// Pure functions over bytes, each checked against RE2 or byte by byte in tests/enforcer/text_test.cpp.
#pragma once

#include <array>
#include <string_view>

#include "enforcer/cursor.hpp"
#include "schema/blob_format.hpp"

namespace x0x {

inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Tokens stand in a block, each followed by a NUL. A NUL inside a token, which would be taken for its end, becomes this
// byte, which is never part of UTF-8 and which no request may hold.
inline constexpr std::uint8_t kNulInToken = 0xff;

// Takes the first token off a block that is not empty.
inline Bytes next_token(Bytes& block) {
  const Bytes token = block.first(std::strlen(reinterpret_cast<const char*>(block.data())));
  block = block.subspan(token.size() + 1);
  return token;
}

// Sixteen bytes that the compiler works on at once, on any processor that can.
using Lanes [[gnu::vector_size(16)]] = std::uint8_t;

// Of one byte, or of each of sixteen. A NUL is not among them: it ends a token.
template <class Byte>
constexpr auto is_forbidden(Byte b) {
  const auto but_bit_1 = b & 0xfd;  // `$` and `&`, `<` and `>` differ in this one
  return (but_bit_1 == '$') | (but_bit_1 == '<') | (b == ';') | (b == '|') | (b == '`') | (b == '\n') |
         (b == kNulInToken);
}

inline bool has_forbidden(Bytes block) {
  Lanes found{}, last{};  // past the end there is nothing to find
  const std::size_t size = block.size();
  if (size < sizeof last) {
    std::memcpy(&last, block.data(), size);
  } else {
    last = load<Lanes>(block.data() + size - sizeof last);
    for (std::size_t i = 0; i < size - sizeof last; i += sizeof last)
      found |= is_forbidden(load<Lanes>(block.data() + i));
  }
  found |= is_forbidden(last);
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(found);
  return (halves[0] | halves[1]) != 0;
}

// Tokens, at least one, each followed by a NUL, and no forbidden byte.
inline bool is_argv(Bytes block) { return !block.empty() && block.back() == 0 && !has_forbidden(block); }

// ^[1-9][0-9]{0,5}$
inline bool is_int(Bytes token) {
  if (token.empty() || token.size() > blob::kIntMaxDigits || token[0] == '0') return false;
  for (const std::uint8_t b : token)
    if (b < '0' || b > '9') return false;
  return true;
}

// [A-Za-z0-9/_.-]: the bytes from `-` to `9` are `-./` and the digits.
constexpr bool is_url_byte(std::uint8_t b) {
  return (b >= '-' && b <= '9') || ((b | 0x20) >= 'a' && (b | 0x20) <= 'z') || b == '_';
}

// What may follow the first slash of a <URL_PATH>: at most 256 such bytes without `..`.
inline bool is_url_tail(Bytes tail) {
  if (tail.size() > blob::kUrlPathMaxBytes) return false;
  std::uint8_t previous = 0;
  for (const std::uint8_t b : tail) {
    if (!is_url_byte(b) || (b == '.' && previous == '.')) return false;
    previous = b;
  }
  return true;
}

// Bytes in the well-formed sequence that starts at text[i], or 0: no overlong forms, no surrogates, nothing above
// U+10FFFF.
inline std::size_t utf8_length(Bytes text, std::size_t i) {
  constexpr std::uint32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};  // of each length
  if (text[i] < 0x80) return 1;
  const auto length = static_cast<std::size_t>(std::countl_one(text[i]));
  if (length < 2 || length > 4 || length > text.size() - i) return 0;
  std::uint32_t code_point = text[i] & (0x7fu >> length);
  for (const std::uint8_t next : text.subspan(i + 1, length - 1)) {
    if ((next & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (next & 0x3f);
  }
  const bool is_surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  return code_point < kLowest[length] || code_point > 0x10ffff || is_surrogate ? 0 : length;
}

inline bool is_utf8(Bytes text) {
  for (std::size_t i = 0, length; i < text.size(); i += length) {
    const bool all_ascii = text.size() - i >= 8 && (load_u64(text.data() + i) & 0x8080808080808080) == 0;
    length = all_ascii ? 8 : utf8_length(text, i);
    if (length == 0) return false;
  }
  return true;
}

}  // namespace x0x
