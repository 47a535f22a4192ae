// What a token may be made of: forbidden bytes, the two templates, UTF-8.
//
// Pure functions over bytes, each checked against RE2 in tests/enforcer/text_test.cpp.
#pragma once

#include <array>
#include <cstring>

#include "enforcer/fault.hpp"
#include "schema/blob_format.hpp"

namespace x0x {

inline constexpr std::uint8_t kByteForbidden = 1, kByteSlash = 2, kByteHigh = 4, kByteUrl = 8;

// One look-up says everything about a byte.
inline constexpr std::array<std::uint8_t, 256> kByteClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned b = 0; b < 256; ++b) {
    if ((b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') || (b >= '0' && b <= '9') || b == '/' || b == '_' ||
        b == '.' || b == '-')
      classes[b] = kByteUrl;
    if (b >= 0x80) classes[b] = kByteHigh;
  }
  for (const char c : blob::kForbiddenBytes) classes[static_cast<std::uint8_t>(c)] |= kByteForbidden;
  classes[0xff] |= kByteForbidden;  // kNulInToken
  classes['/'] |= kByteSlash;
  return classes;
}();

// The union of the classes of all bytes.
inline std::uint8_t classes_of(Bytes text) {
  std::uint8_t classes = 0;
  for (const std::uint8_t b : text) classes |= kByteClasses[b];
  return classes;
}

// Tokens stand in a block, each followed by a NUL. A NUL inside a token, which would be taken for its end, becomes this
// byte, which is never part of UTF-8 and which no request may hold.
inline constexpr std::uint8_t kNulInToken = 0xff;

// Takes the first token off a block that is not empty.
inline Bytes next_token(Bytes& block) {
  const Bytes token = block.first(std::strlen(reinterpret_cast<const char*>(block.data())));
  block = block.subspan(token.size() + 1);
  return token;
}

inline bool has_forbidden_byte(Bytes token) { return (classes_of(token) & kByteForbidden) != 0; }

// ^[1-9][0-9]{0,5}$
inline bool is_int(Bytes token) {
  if (token.empty() || token.size() > blob::kIntMaxDigits || token[0] == '0') return false;
  for (const std::uint8_t b : token)
    if (b < '0' || b > '9') return false;
  return true;
}

// Where the longest URL path tail of a token starts: from here on every byte may stand in a URL path, there
// is no
// `..`, and no more than 256 bytes follow. A `/` at or after this place (or right before it) begins a
// <URL_PATH>.
inline std::size_t url_tail_start(Bytes token) {
  std::size_t start = token.size();
  while (start > 0 && token.size() - start < blob::kUrlPathMaxBytes && kByteClasses[token[start - 1]] & kByteUrl &&
         !(token[start - 1] == '.' && start < token.size() && token[start] == '.'))
    --start;
  return start;
}

// No overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(Bytes text);

// Bytes in the well-formed sequence that starts at text[i], or 0.
std::size_t utf8_length(Bytes text, std::size_t i);

}  // namespace x0x
