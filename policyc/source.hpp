// A policy file in memory, and the way between byte offsets and lines and columns.
//
// Lines and columns count from 1; a column is a code point, a byte that is not UTF-8 counts as one. A byte
// order mark at the start is not counted. tests/policyc/source_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::policyc {

inline constexpr std::size_t kMaxSourceBytes = std::size_t{64} << 20;

struct Source {
  // A byte that no TOML file may hold. Only the first of its kind on a line is listed.
  struct BadByte {
    Span span;
    std::uint8_t value = 0;  // 0: a NUL byte
  };
  struct Checkpoint {
    std::uint32_t offset, code_points;
  };

  std::string name;  // as given on the command line; `-` is shown as `<stdin>`
  std::string text;
  std::vector<std::uint32_t> line_starts;
  std::vector<Checkpoint> checkpoints;  // one every few KiB, so that a file of one line is no slower
  std::vector<BadByte> bad_bytes;

  // The line without its line break; empty past the end of the file.
  std::string_view line(std::uint32_t number) const;

  // The byte offset of a place; past the end of the line: the line's end.
  std::size_t offset_of(std::uint32_t line_number, std::uint32_t column) const;

  // The place of a byte offset.
  Span span_at(std::size_t offset, std::uint32_t length = 1) const;

 private:
  std::size_t line_end(std::uint32_t number) const;
};

// Text that is already in memory, at most kMaxSourceBytes.
Source make_source(std::string name, std::string text);

// Reads a regular file, or standard input for `-`. When it cannot, `error` is one line that says why.
std::optional<Source> load_source(const std::string& path, std::string& error);

}  // namespace x0x::policyc
