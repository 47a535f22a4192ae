// What a token may be made of: forbidden bytes, the two templates, UTF-8; and an argv taken apart into tokens.
//
// Pure functions over bytes, each checked against RE2 in tests/enforcer/text_test.cpp.
#pragma once

#include <array>
#include <cstring>
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

inline constexpr std::uint8_t kByteForbidden = 1, kByteUrl = 2;

// One look-up says everything about a byte.
inline constexpr std::array<std::uint8_t, 256> kByteClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-"))
    classes[static_cast<std::uint8_t>(c)] = kByteUrl;
  for (const char c : blob::kForbiddenBytes) classes[static_cast<std::uint8_t>(c)] = kByteForbidden;
  classes[kNulInToken] = kByteForbidden;
  classes[0] = 0;
  return classes;
}();

// ^[1-9][0-9]{0,5}$
inline bool is_int(Bytes token) {
  if (token.empty() || token.size() > blob::kIntMaxDigits || token[0] == '0') return false;
  for (const std::uint8_t b : token)
    if (b < '0' || b > '9') return false;
  return true;
}

// What may follow the first slash of a <URL_PATH>: at most 256 bytes of [A-Za-z0-9/_.-] without `..`.
inline bool is_url_tail(Bytes tail) {
  if (tail.size() > blob::kUrlPathMaxBytes) return false;
  std::uint8_t previous = 0;
  for (const std::uint8_t b : tail) {
    if ((kByteClasses[b] & kByteUrl) == 0 || (b == '.' && previous == '.')) return false;
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
    const bool eight_ascii = text.size() - i >= 8 && (load_u64(text.data() + i) & 0x8080808080808080) == 0;
    length = eight_ascii ? 8 : utf8_length(text, i);
    if (length == 0) return false;
  }
  return true;
}

// A NUL is not looked for here: it ends a token, and Argv::split counts them.
inline bool has_forbidden_byte(Bytes block) {
  std::uint8_t classes = 0;
#pragma GCC unroll 16
  for (const std::uint8_t b : block) classes |= kByteClasses[b];
  return (classes & kByteForbidden) != 0;
}

// An argv block (every token followed by a NUL) and where its tokens begin.
struct Argv {
  Bytes block;
  std::uint32_t starts[blob::kMaxArgc + 1];  // and one past the last NUL

  // False when there are not argc tokens in it: one holds a NUL. With more than kMaxArgc `starts` means nothing.
  bool split(Bytes from, std::uint32_t argc) {
    constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
    block = from;
    starts[0] = 0;
    std::uint32_t tokens = 0;
    for (std::size_t i = 0; i < block.size(); i += 8) {  // eight bytes at a time; past the end there is no NUL
      std::uint64_t word = ~std::uint64_t{0};
      if (block.size() - i >= 8)
        word = load_u64(block.data() + i);
      else
        for (std::size_t k = block.size(); k > i; --k) word = word << 8 | block[k - 1];
      for (std::uint64_t nuls = ~(((word & kLow) + kLow) | word | kLow); nuls != 0; nuls &= nuls - 1) {
        ++tokens;
        const std::size_t nul = i + static_cast<std::size_t>(std::countr_zero(nuls)) / 8;
        starts[tokens <= blob::kMaxArgc ? tokens : 0] = static_cast<std::uint32_t>(nul + 1);
      }
    }
    return tokens == argc && (block.empty() || block.back() == 0);
  }
  Bytes token(std::uint32_t i) const { return block.subspan(starts[i], starts[i + 1] - 1 - starts[i]); }
};

}  // namespace x0x
