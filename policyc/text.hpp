// UTF-8 as people see it: code points, what is invisible, how wide it stands on a terminal.
//
// decode() is total: any byte at any offset gives a step forward. tests/policyc/text_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace x0x::policyc {

struct CodePoint {
  char32_t value = 0;  // the byte itself when it is not valid
  std::uint32_t bytes = 1;
  bool valid = true;
};

// The code point that starts at `offset`, which must be inside `text`. A byte that starts none is one invalid
// byte.
CodePoint decode(std::string_view text, std::size_t offset);

std::size_t count_code_points(std::string_view text);

// Control characters, the tab and the line feed included.
bool is_control(char32_t c);

// Zero-width, bidirectional and other characters that show nothing or rearrange what is shown.
bool is_invisible(char32_t c);

// `\u{202e}`, or `\x{ff}` for a byte that is not UTF-8.
std::string escape_code_point(CodePoint c);

// Text from a file that is safe to print: control, invisible and invalid characters are escaped.
std::string escape(std::string_view text);

// The same, cut to about `limit` code points with `…`, between backticks: how messages quote what the author
// wrote.
std::string quote(std::string_view text, std::size_t limit = 60);

// "1 entry", "2 entries"
std::string count_of(std::size_t count, std::string_view one, std::string_view many);

// Columns on a terminal, 0 for combining marks, 2 for wide characters.
std::size_t display_width(char32_t c);

}  // namespace x0x::policyc
