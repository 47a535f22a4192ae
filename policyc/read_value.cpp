#include "policyc/read_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "policyc/parse.hpp"
#include "policyc/suggest.hpp"
#include "policyc/text.hpp"
#include "policyc/toml_text.hpp"

namespace x0x::policyc {

namespace {

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return node.is_array_of_tables() ? "an array of tables" : "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date-time";
    default:
      return "nothing";
  }
}

// Advice for a value that is right but for its quotes.
std::string quotes_help(const toml::node& node) { return node.is_string() ? "remove the quotes" : std::string(); }

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::string Field::name() const { return index < 0 ? fmt::format("`{}`", key) : fmt::format("`{}[{}]`", key, index); }

Span span_of(const Reader& reader, const toml::source_region& region) {
  Span span{region.begin.line, region.begin.column, 1};
  if (region.end.line == region.begin.line) {
    span.length = std::max<std::uint32_t>(region.end.column - region.begin.column, 1);
  } else {
    // It goes on below: underline what is on the first line.
    const std::size_t begin = reader.source.offset_of(span.line, span.column);
    const std::size_t end = reader.source.offset_of(span.line, UINT32_MAX);
    const auto rest = std::string_view(reader.source.text).substr(begin, end - begin);
    span.length = std::max<std::uint32_t>(static_cast<std::uint32_t>(count_code_points(rest)), 1);
  }
  return span;
}

Span span_of(const Reader& reader, const toml::node& node) { return span_of(reader, node.source()); }

void report_wrong_type(Reader& reader, const Field& field, std::string_view expected, std::string help) {
  reader.diagnostics.report(Kind::wrong_type, span_of(reader, field.value),
                            fmt::format("{} must be {}, not {}", field.name(), expected, type_name(field.value)),
                            std::move(help));
}

std::optional<bool> read_bool(Reader& reader, const Field& field) {
  if (const auto* value = field.value.as_boolean()) return value->get();
  report_wrong_type(reader, field, "`true` or `false`", quotes_help(field.value));
  return std::nullopt;
}

std::optional<std::uint64_t> read_number(Reader& reader, const Field& field, NumberRule rule) {
  const auto* number = field.value.as_integer();
  if (number == nullptr) {
    report_wrong_type(reader, field, "a whole number", quotes_help(field.value));
    return std::nullopt;
  }
  const std::int64_t value = number->get();
  const Span span = span_of(reader, field.value);
  if (value < 0) {
    reader.diagnostics.report(Kind::negative_number, span, fmt::format("{} must not be negative", field.name()));
    return std::nullopt;
  }
  if (value == 0 && !rule.zero_allowed) {
    reader.diagnostics.report(Kind::zero_number, span, fmt::format("{} must be greater than zero", field.name()),
                              "remove the key to leave it unset");
    return std::nullopt;
  }
  if (static_cast<std::uint64_t>(value) > rule.max) {
    reader.diagnostics.report(Kind::number_too_large, span,
                              fmt::format("{} must be at most {}", field.name(), rule.max));
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

void report_invisible(Reader& reader, std::string_view text, const Field& field) {
  const auto plain = [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n'; };
  if (std::all_of(text.begin(), text.end(), plain)) return;
  std::size_t index = 0;
  for (std::size_t at = 0; at < text.size(); ++index) {
    const CodePoint c = decode(text, at);
    at += c.bytes;
    const bool control = is_control(c.value) && c.value != '\t' && c.value != '\n';
    if (!control && !is_invisible(c.value)) continue;
    reader.diagnostics.report(
        Kind::invisible_character, place_in_string(reader.source, span_of(reader, field.value), index, 1),
        fmt::format("{} holds the {} character `{}`", field.name(), control ? "control" : "invisible",
                    escape_code_point(c)),
        "a reader of the policy or of the log cannot see what it does; requests are compared byte by byte");
    return;
  }
}

std::optional<std::string> read_text(Reader& reader, const Field& field) {
  const auto* string = field.value.as_string();
  if (string == nullptr) {
    report_wrong_type(reader, field, "a string");
    return std::nullopt;
  }
  const std::string& text = string->get();
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos) {
    const std::size_t index = count_code_points(std::string_view(text).substr(0, nul));
    reader.diagnostics.report(Kind::nul_in_string,
                              place_in_string(reader.source, span_of(reader, field.value), index, 1),
                              fmt::format("{} holds a NUL character", field.name()));
    return std::nullopt;
  }
  report_invisible(reader, text, field);
  return text;
}

std::optional<std::string> read_path(Reader& reader, const Field& field) {
  auto path = read_text(reader, field);
  if (!path || path->starts_with('/')) return path;
  reader.diagnostics.report(Kind::relative_path, span_of(reader, field.value),
                            fmt::format("{} must be an absolute path", field.name()), "start it with `/`");
  return std::nullopt;
}

std::optional<std::uint64_t> read_time(Reader& reader, const Field& field) {
  const auto* node = field.value.as_date_time();
  if (node == nullptr) {
    report_wrong_type(reader, field, "a date-time such as `2030-01-31T00:00:00Z`", quotes_help(field.value));
    return std::nullopt;
  }
  const toml::date_time& time = node->get();
  const Span span = span_of(reader, field.value);
  if (time.is_local()) {
    reader.diagnostics.report(Kind::local_date_time, span, fmt::format("{} has no offset from UTC", field.name()),
                              "add `Z`");
    return std::nullopt;
  }
  if (time.time.nanosecond != 0) {
    reader.diagnostics.report(Kind::fractional_second, span, fmt::format("{} has a fraction of a second", field.name()),
                              "write whole seconds; the table keeps nothing finer");
    return std::nullopt;
  }
  using namespace std::chrono;
  const sys_days days = year(time.date.year) / month(time.date.month) / day(time.date.day);
  const sys_seconds moment = sys_seconds(days) + hours(time.time.hour) + minutes(time.time.minute) +
                             seconds(time.time.second) - minutes(time.offset->minutes);
  const std::int64_t seconds_since_epoch = moment.time_since_epoch().count();
  if (seconds_since_epoch <= 0) {
    reader.diagnostics.report(Kind::date_before_epoch, span,
                              fmt::format("{} must be after 1970-01-01T00:00:00Z", field.name()));
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(seconds_since_epoch);
}

std::optional<std::array<std::uint8_t, 32>> read_hex(Reader& reader, const Field& field, Kind kind) {
  const auto text = read_text(reader, field);
  if (!text) return std::nullopt;
  const Span span = span_of(reader, field.value);
  std::array<std::uint8_t, 32> bytes{};
  std::size_t index = 0;
  for (std::size_t at = 0; at < text->size(); ++index) {
    const CodePoint c = decode(*text, at);
    const auto digit = c.value < 0x80 ? hex_digit(static_cast<char>(c.value)) : std::nullopt;
    if (!digit) {
      reader.diagnostics.report(kind, place_in_string(reader.source, span, index, 1),
                                fmt::format("{} holds {}, which is not a hexadecimal digit", field.name(),
                                            quote(std::string_view(*text).substr(at, c.bytes))));
      return std::nullopt;
    }
    if (index < 64) bytes[index / 2] = static_cast<std::uint8_t>(bytes[index / 2] << 4 | *digit);
    at += c.bytes;
  }
  if (index != 64) {
    reader.diagnostics.report(kind, span,
                              fmt::format("{} has {} hexadecimal digits instead of 64", field.name(), index));
    return std::nullopt;
  }
  return bytes;
}

const toml::array* read_array(Reader& reader, const Field& field, std::string_view expected) {
  const toml::array* array = field.value.as_array();
  if (array == nullptr)
    report_wrong_type(reader, field, expected, field.value.is_string() ? "put it in brackets: `[…]`" : std::string());
  return array;
}

const toml::table* read_table(Reader& reader, const Field& field, std::string_view header) {
  const toml::table* table = field.value.as_table();
  if (table == nullptr)
    report_wrong_type(
        reader, field, "a table",
        field.value.is_array_of_tables() ? fmt::format("write `[{}]`, with single brackets", header) : std::string());
  return table;
}

std::vector<const toml::table*> read_tables(Reader& reader, const Field& field, std::string_view header) {
  std::vector<const toml::table*> tables;
  const toml::array* array = field.value.as_array();
  if (array == nullptr) {
    report_wrong_type(
        reader, field, "an array of tables",
        field.value.is_table() ? fmt::format("write `[[{}]]`, with double brackets", header) : std::string());
    return tables;
  }
  tables.reserve(array->size());
  std::int64_t index = 0;
  for (const toml::node& element : *array) {
    if (const toml::table* table = element.as_table()) {
      tables.push_back(table);
    } else {
      report_wrong_type(reader, Field{field.key, element, index}, "a table");
    }
    ++index;
  }
  return tables;
}

std::vector<std::string> read_set(Reader& reader, const Field& field,
                                  std::optional<std::string> (*read)(Reader&, const Field&)) {
  std::vector<std::string> items;
  std::vector<std::pair<std::string, Span>> found;
  const toml::array* array = read_array(reader, field, "an array of strings");
  if (array == nullptr) return items;
  std::int64_t index = 0;
  for (const toml::node& element : *array) {
    if (auto item = read(reader, Field{field.key, element, index}))
      found.emplace_back(std::move(*item), span_of(reader, element));
    ++index;
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [item, span] : found) {
    if (!items.empty() && items.back() == item) {
      reader.diagnostics.report(Kind::duplicate_item, span, fmt::format("`{}` lists {} twice", field.key, quote(item)),
                                "remove one of them");
      continue;
    }
    items.push_back(std::move(item));
  }
  return items;
}

void report_unknown_key(Reader& reader, const toml::key& key, std::span<const std::string_view> known,
                        std::string_view table) {
  std::string help;
  if (const auto near = nearest(key.str(), known)) {
    help = fmt::format("did you mean `{}`?", *near);
  } else if (const auto home = table_of_key(key.str())) {
    help = fmt::format("`{}` belongs in `{}`", key.str(), *home);
  }
  reader.diagnostics.report(Kind::unknown_key, span_of(reader, key.source()),
                            fmt::format("unknown key {} in `{}`", quote(key.str()), table), std::move(help));
}

}  // namespace x0x::policyc
