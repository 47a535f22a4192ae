// Typed reading of TOML values: each function returns the value, or reports what is wrong with it and returns
// nothing.
//
// Shared by the parsers of [policy], [exec], entries and commands. tests/policyc/parse_test.cpp and
// corpus_test.cpp.
#pragma once

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policyc/arg_template.hpp"
#include "policyc/diagnostic.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

// What every parser needs, for one file.
struct Reader {
  const Source& source;
  Diagnostics& diagnostics;
  ArgReader args{};
};

// A value and how messages call it: `key`, or `key[index]` inside an array.
struct Field {
  std::string_view key;
  const toml::node& value;
  std::int64_t index = -1;

  std::string name() const;
};

Span span_of(const Reader& reader, const toml::source_region& region);
Span span_of(const Reader& reader, const toml::node& node);

struct NumberRule {
  std::uint64_t max = UINT64_MAX;
  bool zero_allowed = false;
};

std::optional<bool> read_bool(Reader& reader, const Field& field);
std::optional<std::uint64_t> read_number(Reader& reader, const Field& field, NumberRule rule = {});
std::optional<std::string> read_text(Reader& reader, const Field& field);
std::optional<std::string> read_path(Reader& reader, const Field& field);
std::optional<std::uint64_t> read_time(Reader& reader, const Field& field);
std::optional<std::array<std::uint8_t, 32>> read_hex(Reader& reader, const Field& field, Kind kind);
const toml::array* read_array(Reader& reader, const Field& field, std::string_view expected);
const toml::table* read_table(Reader& reader, const Field& field, std::string_view header);

// The tables of an array of tables, `[[header]]` or inline. Elements of another type are reported.
std::vector<const toml::table*> read_tables(Reader& reader, const Field& field, std::string_view header);

// `array` sorted; something listed twice is reported.
std::vector<std::string> read_set(Reader& reader, const Field& field,
                                  std::optional<std::string> (*read)(Reader&, const Field&));

void report_wrong_type(Reader& reader, const Field& field, std::string_view expected, std::string help = {});
void report_invisible(Reader& reader, std::string_view text, const Field& field);

// A key of a table, and the function that reads its value into a T.
template <class T>
struct Key {
  std::string_view name;
  void (*read)(Reader&, const Field&, T&);
};

void report_unknown_key(Reader& reader, const toml::key& key, std::span<const std::string_view> known,
                        std::string_view table);

template <class T, std::size_t N>
std::vector<std::string_view> names_of(const Key<T> (&keys)[N]) {
  std::vector<std::string_view> names;
  for (const Key<T>& key : keys) names.push_back(key.name);
  return names;
}

// Reads every key of `table` that is in `keys` into `out`; others are errors.
template <class T, std::size_t N>
void read_keys(Reader& reader, const toml::table& table, const Key<T> (&keys)[N], std::string_view name, T& out) {
  for (const auto& [key, value] : table) {
    const std::string_view wanted = key.str();
    const auto* known = std::find_if(std::begin(keys), std::end(keys),
                                     [&](const Key<T>& candidate) { return candidate.name == wanted; });
    if (known != std::end(keys)) {
      known->read(reader, Field{known->name, value}, out);
    } else {
      report_unknown_key(reader, key, names_of(keys), name);
    }
  }
}

// Readers for plain members, to fill a table of keys with.
template <auto Member, class T>
void number_into(Reader& reader, const Field& field, T& out) {
  using Number = std::remove_reference_t<decltype(out.*Member)>;
  if (const auto value = read_number(reader, field, {std::numeric_limits<Number>::max(), false}))
    out.*Member = static_cast<Number>(*value);
}

template <auto Member, class T>
void bool_into(Reader& reader, const Field& field, T& out) {
  if (const auto value = read_bool(reader, field)) out.*Member = *value;
}

template <auto Member, class T>
void text_into(Reader& reader, const Field& field, T& out) {
  if (auto value = read_text(reader, field)) out.*Member = std::move(*value);
}

}  // namespace x0x::policyc
