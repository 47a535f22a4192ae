#include "policyc/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <iterator>

#include <locale.h>

namespace x0x::policyc {

namespace {

struct Range {
  char32_t first, last;
};

// Unicode's format characters (Cf) and the other ones without a shape of their own, in order. The variation
// selectors that emoji use are left out.
constexpr Range kInvisible[] = {
    {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},
    {0x070f, 0x070f},   {0x08e2, 0x08e2},   {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x2800, 0x2800},   {0x3164, 0x3164},
    {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

CodePoint decode(std::string_view text, std::size_t offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) return {lead, 1, true};
  const CodePoint invalid{lead, 1, false};
  const std::uint32_t bytes = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size() - offset) return invalid;
  char32_t value = lead & (0x7fu >> bytes);
  for (std::uint32_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[offset + i])) return invalid;
    value = value << 6 | (static_cast<unsigned char>(text[offset + i]) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (overlong || surrogate || value > 0x10ffff) return invalid;
  return {value, bytes, true};
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += decode(text, at).bytes;
  return count;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c <= 0x9f); }

bool is_invisible(char32_t c) {
  if (c < 0xad) return false;
  const auto* range = std::lower_bound(std::begin(kInvisible), std::end(kInvisible), c,
                                       [](const Range& r, char32_t value) { return r.last < value; });
  return range != std::end(kInvisible) && c >= range->first;
}

std::string escape_code_point(CodePoint c) {
  const auto value = static_cast<std::uint32_t>(c.value);
  return c.valid ? fmt::format("\\u{{{:x}}}", value) : fmt::format("\\x{{{:x}}}", value);
}

std::string escape(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode(text, at);
    if (!c.valid || is_control(c.value) || is_invisible(c.value)) {
      shown += escape_code_point(c);
    } else {
      shown += text.substr(at, c.bytes);
    }
    at += c.bytes;
  }
  return shown;
}

std::string quote(std::string_view text, std::size_t limit) {
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size() && count < limit; ++count) at += decode(text, at).bytes;
  return fmt::format("`{}{}`", escape(text.substr(0, at)), at < text.size() ? "…" : "");
}

std::string count_of(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::size_t display_width(char32_t c) {
  if (c < 0x7f) return 1;
  // The widths come from the C library; this locale is built into it.
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t previous = uselocale(utf8);
  const int width = wcwidth(static_cast<wchar_t>(c));
  uselocale(previous);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace x0x::policyc
