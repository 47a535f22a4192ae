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

// An argv block (every token followed by a NUL) and where its tokens begin.
struct Argv {
  Bytes block;
  std::uint32_t starts[blob::kMaxArgc + 1];  // and one past the last NUL

  // False when a token holds a forbidden byte: a NUL inside one shows as a token too many. With more than kMaxArgc
  // tokens the answer is right and `starts` means nothing.
  bool split(Bytes from, std::uint32_t argc) {
    block = from;
    std::uint32_t tokens = 0;
    starts[0] = 0;
    for (std::uint32_t i = 0; i < block.size(); ++i) {
      if ((kByteClasses[block[i]] & kByteForbidden) == 0) continue;
      if (block[i] != 0) return false;
      ++tokens;
      starts[tokens <= blob::kMaxArgc ? tokens : 0] = i + 1;
    }
    return tokens == argc && (block.empty() || block.back() == 0);
  }
  Bytes token(std::uint32_t i) const { return block.subspan(starts[i], starts[i + 1] - 1 - starts[i]); }
};

}  // namespace x0x
