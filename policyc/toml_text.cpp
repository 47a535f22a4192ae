#include "policyc/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

// The offset just after the string that starts at `at`; the end of the text when it is not closed.
std::size_t skip_string(std::string_view text, std::size_t at) {
  const char quote_mark = text[at];
  const bool escapes = quote_mark == '"';
  const bool multi_line = text.substr(at + 1, 2) == (escapes ? "\"\"" : "''");
  at += multi_line ? 3 : 1;
  while (at < text.size()) {
    const char c = text[at];
    if (c != quote_mark && c != '\\' && c != '\n') {
      ++at;
      continue;
    }
    if (c != quote_mark) {
      if (!multi_line && c == '\n') return at;
      at += escapes && c == '\\' ? 2 : 1;
      continue;
    }
    std::size_t run = 1;
    while (multi_line && run < 5 && at + run < text.size() && text[at + run] == quote_mark) ++run;
    at += run;
    if (!multi_line || run >= 3) return at;
  }
  return text.size();
}

constexpr std::array<bool, 256> structural_bytes() {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("\"'#[]{}.=,\n")) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr auto kStructural = structural_bytes();

struct LimitScan {
  std::size_t nesting = 0, dots = 0, values = 0;

  // Which limit the structural character `c` breaks; empty when none.
  std::string step(char c) {
    switch (c) {
      case '[':
      case '{':
        dots = 0;
        ++values;
        if (++nesting > kMaxNesting) return fmt::format("values are nested more than {} deep", kMaxNesting);
        break;
      case ']':
      case '}':
        if (nesting > 0) --nesting;
        break;
      case '.':
        if (++dots >= kMaxKeyParts) return fmt::format("a key has more than {} parts", kMaxKeyParts);
        break;
      case '=':
      case ',':
        dots = 0;
        ++values;
        break;
      case '\n':
        dots = 0;
        break;
      default:
        break;
    }
    if (values > kMaxValues) return fmt::format("the file has more than {} values", kMaxValues);
    return {};
  }
};

// Walks the value of a string literal, one decoded code point per step.
class StringWalk {
 public:
  StringWalk(const Source& source, Span literal)
      : text_(source.text), at_(source.offset_of(literal.line, literal.column)), place_(literal) {
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return;
    escapes_ = text_[at_] == '"';
    const bool multi_line = text_.substr(at_ + 1, 2) == (escapes_ ? "\"\"" : "''");
    skip(multi_line ? 3 : 1);
    if (multi_line && text_.substr(at_, 2) == "\r\n") skip(1);
    if (multi_line && text_.substr(at_, 1) == "\n") skip(1);
    skip_continuations();
  }

  // The place of the next code point of the value; `length` is what it takes in the file.
  Span next() {
    Span here = place_;
    const std::size_t start_column = place_.column;
    if (at_ < text_.size() && escapes_ && text_[at_] == '\\') {
      const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
      skip(letter == 'u' ? 6 : letter == 'U' ? 10 : 2);
      here.length = place_.column - static_cast<std::uint32_t>(start_column);
    } else {
      if (text_.substr(at_, 2) == "\r\n") skip(1);
      skip(1);
      here.length = 1;
    }
    skip_continuations();
    return here;
  }

 private:
  void skip(std::size_t code_points) {
    for (; code_points > 0 && at_ < text_.size(); --code_points) {
      const CodePoint c = decode(text_, at_);
      at_ += c.bytes;
      ++place_.column;
      if (c.value == '\n') {
        ++place_.line;
        place_.column = 1;
      }
    }
  }

  // A backslash at the end of a line takes the line break and the white space after it out of the value.
  void skip_continuations() {
    while (escapes_ && at_ < text_.size() && text_[at_] == '\\') {
      const std::size_t next = text_.find_first_not_of(" \t\r", at_ + 1);
      if (next == std::string_view::npos || text_[next] != '\n') return;
      const std::size_t end = std::min(text_.find_first_not_of(" \t\r\n", next), text_.size());
      while (at_ < end) skip(1);
    }
  }

  std::string_view text_;
  std::size_t at_;
  Span place_;
  bool escapes_ = false;
};

}  // namespace

bool within_limits(const Source& source, Diagnostics& diagnostics) {
  const std::string_view text = source.text;
  LimitScan scan;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (!kStructural[static_cast<unsigned char>(c)]) {
      ++at;
      continue;
    }
    if (c == '"' || c == '\'') {
      at = skip_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (std::string broken = scan.step(c); !broken.empty()) {
      diagnostics.report(Kind::too_complex, source.span_at(at), std::move(broken));
      return false;
    }
    ++at;
  }
  return true;
}

std::optional<Span> unclosed_string(const Source& source, std::uint32_t line) {
  const std::string_view text = source.line(line);
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '#') break;
    if (text[at] != '"' && text[at] != '\'') {
      ++at;
      continue;
    }
    const std::size_t start = at;
    at = skip_string(text, at);
    const bool closed = at - start > 1 && text[at - 1] == text[start];
    if (closed && at <= text.size()) continue;
    const auto length = static_cast<std::uint32_t>(count_code_points(text.substr(start)));
    return source.span_at(source.line_starts[line - 1] + start, length);
  }
  return std::nullopt;
}

std::vector<Span> places_in_string(const Source& source, Span literal, std::span<const Part> parts) {
  std::vector<Span> places;
  StringWalk walk(source, literal);
  std::size_t at = 0;
  for (const Part& part : parts) {
    for (; at < part.first; ++at) walk.next();
    Span place = walk.next();
    ++at;
    bool same_line = true;
    for (; at < part.first + part.count; ++at) {
      const Span next = walk.next();
      same_line = same_line && next.line == place.line;
      if (same_line) place.length = next.column + next.length - place.column;
    }
    places.push_back(place);
  }
  return places;
}

Span place_in_string(const Source& source, Span literal, std::size_t first, std::size_t count) {
  const Part part{first, count};
  return places_in_string(source, literal, {&part, 1}).front();
}

}  // namespace x0x::policyc
