// The raw text of a TOML file, where the library that parses it does not look: limits that keep a hostile
// file from exhausting memory or the stack, and the place of a character inside a quoted string.
//
// tests/policyc/toml_text_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policyc/diagnostic.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

inline constexpr std::size_t kMaxNesting = 32;        // open brackets and braces
inline constexpr std::size_t kMaxKeyParts = 16;       // a.b.c has three
inline constexpr std::size_t kMaxValues = 4'000'000;  // about 100 bytes of memory each

// Reports and returns false when the file goes over one of the limits. Exact up to the first syntax error,
// and nothing after it is ever parsed.
bool within_limits(const Source& source, Diagnostics& diagnostics);

// Where parts of a string's value stand in the file; they are given in their order, so the string is read once.
// `literal` is the place of the string with its quotes. What runs over the end of a line is cut there.
struct Part {
  std::size_t first, count;  // code points of the value
};
std::vector<Span> places_in_string(const Source& source, Span literal, std::span<const Part> parts);
Span place_in_string(const Source& source, Span literal, std::size_t first, std::size_t count);

// Where a string starts that is not closed on this line, for a line that does not start inside one.
std::optional<Span> unclosed_string(const Source& source, std::uint32_t line);

}  // namespace x0x::policyc
