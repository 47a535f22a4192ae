// What texts may be made of: forbidden bytes, the two templates, UTF-8; and argv blocks, their tokens one after
// another.
//
// Pure functions over bytes, each checked against RE2 or byte by byte in tests/enforcer/text_test.cpp.
#pragma once

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
struct Halves {
  std::uint64_t low, high;
};

// Of one byte, or of each of sixteen. A NUL is not among them: it ends a token, and is_argv counts them.
template <class Byte>
constexpr auto is_forbidden(Byte b) {
  const auto but_bit_1 = b & 0xfd;  // `$` and `&`, `<` and `>` differ in this one
  return (but_bit_1 == '$') | (but_bit_1 == '<') | (b == ';') | (b == '|') | (b == '`') | (b == '\n') |
         (b == kNulInToken);
}

// So many tokens, each followed by a NUL, and no forbidden byte.
inline bool is_argv(Bytes block, std::uint32_t argc) {
  if (block.empty()) return argc == 0;
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  Lanes forbidden{}, last = Lanes{} + 1;  // past the end there is nothing to find
  std::uint64_t tokens = 0;
  const auto look = [&](Lanes bytes) {
    forbidden |= is_forbidden(bytes);
    const auto nuls = std::bit_cast<Halves>((bytes == 0) & 1);
    tokens += ((nuls.low + nuls.high) * kOnes) >> 56;  // the sum of the bytes of both
  };
  const std::size_t whole = block.size() & ~(sizeof(Lanes) - 1);
  std::memcpy(&last, block.data() + whole, block.size() - whole);
  look(last);
  for (std::size_t i = 0; i < whole; i += sizeof(Lanes)) look(load<Lanes>(block.data() + i));
  const auto found = std::bit_cast<Halves>(forbidden);
  return (found.low | found.high) == 0 && tokens == argc && block.back() == 0;
}

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

// Bytes in the well-formed sequence that starts at text[i], or 0. The ranges are Unicode's table 3-7.
inline std::size_t utf8_length(Bytes text, std::size_t i) {
  const std::uint8_t lead = text[i];
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > text.size() - i) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    const std::uint8_t low = k > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = k > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[i + k] < low || text[i + k] > high) return 0;
  }
  return length;
}

// No overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(Bytes text) {
  for (std::size_t i = 0, length; i < text.size(); i += length) {
    const auto is_ascii = [](Halves h) { return ((h.low | h.high) & 0x8080808080808080) == 0; };
    const bool all_ascii = text.size() - i >= sizeof(Halves) && is_ascii(load<Halves>(text.data() + i));
    length = all_ascii ? sizeof(Halves) : utf8_length(text, i);
    if (length == 0) return false;
  }
  return true;
}

}  // namespace x0x
