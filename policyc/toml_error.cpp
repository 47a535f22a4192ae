#include "policyc/toml_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/text.hpp"
#include "policyc/toml_text.hpp"

namespace x0x::policyc {

namespace {

// The library's message, taken apart: "Error while parsing array: expected comma, saw 'x'".
struct Complaint {
  std::string_view scope;   // array
  std::string_view reason;  // expected comma, saw 'x'
};

Complaint take_apart(std::string_view text) {
  constexpr std::string_view kOpening = "Error while parsing ";
  const std::size_t colon = text.find(": ");
  if (!text.starts_with(kOpening) || colon == std::string_view::npos) return {"", text};
  return {text.substr(kOpening.size(), colon - kOpening.size()), text.substr(colon + 2)};
}

// 'x' becomes `x`; what stands between the quotes may be any character of the file.
std::string with_backticks(std::string_view reason) {
  std::string shown = escape(reason);
  std::size_t open = shown.find(" '");
  while (open != std::string::npos) {
    const std::size_t close = shown.find('\'', open + 3);
    if (close == std::string::npos) break;
    shown[open + 1] = '`';
    shown[close] = '`';
    open = shown.find(" '", close);
  }
  if (const std::size_t saw = shown.find(", saw "); saw != std::string::npos) shown.replace(saw, 6, ", found ");
  if (const std::size_t sv = shown.find(" (TOML_MAX"); sv != std::string::npos) shown.resize(sv);
  return shown;
}

constexpr std::string_view kUnclosed = "the string is not closed on its line";
constexpr std::string_view kNoValue = "this is not a TOML value";
constexpr std::string_view kControl = "the string holds a control character";

struct Advice {
  std::string_view scope, reason;  // both are looked for at the start
  std::string_view message, help;  // an empty message: the library's own
};

// The first that fits. Ordered from particular to general.
constexpr Advice kAdvice[] = {
    {"literal string", "encountered end-of-file", "the file ends inside a string", "close it with `'`"},
    {"string", "encountered end-of-file", "the file ends inside a string", "close the string"},
    {"array", "encountered end-of-file", "the file ends inside an array", "close it with `]`"},
    {"inline table", "encountered end-of-file", "the file ends inside a table", "close it with `}`"},
    {"table header", "encountered end-of-file", "the file ends inside a table header", "close it with `]`"},
    {"", "encountered end-of-file", "the file ends in the middle of a value", "write `key = value`"},
    {"string", "unescaped control characters", kUnclosed,
     "close it with `\"`; for several lines use `\"\"\"`, for a control character use an escape such as "
     "`\\t`"},
    {"literal string", "control characters", kUnclosed, "close it with `'`; for several lines use `'''`"},
    {"comment", "control characters", "a comment holds a control character", "remove it"},
    {"", "unknown escape sequence", "", "write `\\\\` for a backslash, or use a literal string: `'…'`"},
    {"", "escape sequence", "", "write `\\u00XX` instead"},
    {"array", "expected comma or closing ']'", "", "put a comma between the elements"},
    {"array", "expected value or closing ']'", "two commas without a value between them", "remove one comma"},
    {"inline table", "expected comma or closing '}'", "", "put a comma between the keys"},
    {"inline table", "expected key-value pair, saw closing", "a comma before the closing `}`", "remove the comma"},
    {"inline table", "expected key or closing '}'", "",
     "an inline table stays on one line: `{ key = value, key = value }`"},
    {"", "expected '=', saw", "", "write `key = value`"},
    {"", "expected value, saw", "a value is missing after `=`", "write `key = value`"},
    {"", "could not determine value type", kNoValue, "text needs quotes: `\"…\"`; booleans are `true` and `false`"},
    {"floating-point", "expected 'nan'", kNoValue, "text needs quotes: `\"…\"`; booleans are `true` and `false`"},
    {"floating-point", "expected 'inf'", kNoValue, "text needs quotes: `\"…\"`; booleans are `true` and `false`"},
    {"boolean", "", kNoValue, "booleans are `true` and `false`; text needs quotes: `\"…\"`"},
    {"", "expected value-terminator", "", "put a line break or a comma after the value"},
    {"", "expected a comment or whitespace", "", "put each key on a line of its own"},
    {"", "'", "this number is too large", "numbers go from -9223372036854775808 to 9223372036854775807"},
    {"", "leading zeroes are prohibited", "", "write the number without the zero, or put it in quotes"},
    {"", "tables with blank bare keys", "a table header without a name", "write `[exec]`"},
    {"", "[[array-of-table]] brackets", "a space between the two brackets of a table header", "write `[[exec.allow]]`"},
    {"", "multi-line strings are prohibited", "", "write the key on one line"},
};

// The whole word around a place, up to what separates values on both sides.
Span word_at(const Source& source, Span span) {
  const std::string_view line = source.line(span.line);
  const std::size_t start = source.line_starts[span.line - 1];
  const std::size_t at = source.offset_of(span.line, span.column) - start;
  const std::size_t before = at == 0 ? std::string_view::npos : line.find_last_of(" \t=,[{", at - 1);
  const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view word = line.substr(first, std::min(line.find_first_of(" \t,]}#", at), line.size()) - first);
  const auto length = static_cast<std::uint32_t>(count_code_points(word));
  return source.span_at(start + first, std::max(length, 1u));
}

// Such an error is found at the end of the word; all of it is what is wrong.
bool is_about_number_or_date(const Complaint& complaint) {
  for (const std::string_view scope : {"integer", "floating-point", "date", "time"})
    if (complaint.scope.find(scope) != std::string_view::npos) return true;
  return false;
}

Advice advice_for(const Complaint& complaint) {
  for (const Advice& advice : kAdvice)
    if (complaint.scope.starts_with(advice.scope) && complaint.reason.starts_with(advice.reason)) return advice;
  return {};
}

// ---- a key that is defined twice
// --------------------------------------------------------------------------------

struct Found {
  toml::source_position position{};
  const toml::table* table = nullptr;
};

// The table whose header comes last: the one that a key on the next line goes into.
void find_last_table(const Source& source, const toml::node& node, Found& last) {
  if (const toml::table* table = node.as_table()) {
    const toml::source_position begin = table->source().begin;
    const bool header = source.text.substr(source.offset_of(begin.line, begin.column), 1) == "[";
    if (header && !table->is_inline() && last.position <= begin) last = {begin, table};
    for (const auto& [key, value] : *table) find_last_table(source, value, last);
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) find_last_table(source, element, last);
  }
}

// The line on which `path` was first defined, from the part of the file above the second definition.
std::optional<std::uint32_t> first_definition(const Source& source, std::uint32_t line, std::string_view path,
                                              bool header) {
  try {
    const std::size_t end = source.offset_of(line, 1);
    const toml::table above = toml::parse(std::string_view(source.text).substr(0, end));
    Found last;
    if (!header) find_last_table(source, above, last);
    const toml::table* table = last.table == nullptr ? &above : last.table;
    while (true) {
      const std::size_t dot = path.find('.');
      const auto found = table->find(path.substr(0, dot));
      if (found == table->end()) return std::nullopt;
      if (dot == std::string_view::npos)
        return header ? found->second.source().begin.line : found->first.source().begin.line;
      const toml::node* below = &found->second;
      if (const toml::array* array = below->as_array(); array != nullptr && !array->empty()) below = &array->back();
      table = below->as_table();
      if (table == nullptr) return std::nullopt;
      path.remove_prefix(dot + 1);
    }
  } catch (const toml::parse_error&) {
    return std::nullopt;  // the line above is in the middle of something
  }
}

// The library points at the value or the header's bracket; the name itself is easier to see.
Span place_of_name(const Source& source, Span span, std::string_view name, bool header) {
  const std::string_view line = source.line(span.line);
  const std::size_t start = source.line_starts[span.line - 1];
  const std::size_t at = source.offset_of(span.line, span.column) - start;
  const std::size_t found = header ? line.find(name, at) : line.rfind(name, at);
  if (found == std::string_view::npos) return span;
  return source.span_at(start + found, static_cast<std::uint32_t>(count_code_points(name)));
}

void report_duplicate(const Source& source, Span span, std::string_view reason, Diagnostics& diagnostics) {
  const std::size_t open = reason.find('\'');
  const std::size_t close = reason.rfind('\'');
  const bool named = open != std::string_view::npos && close > open;
  const std::string_view path = named ? reason.substr(open + 1, close - open - 1) : std::string_view();
  const bool header = source.line(span.line)
                          .substr(0, source.offset_of(span.line, span.column) - source.line_starts[span.line - 1] + 1)
                          .find_first_not_of(" \t[") >= span.column - 1;
  std::string help;
  if (named) {
    if (const auto line = first_definition(source, span.line, path, header))
      help = fmt::format("it is first defined on line {}", *line);
    span = place_of_name(source, span, path, header);
  }
  if (reason.ends_with("as table") && reason.find("array") != std::string_view::npos)
    help += (help.empty() ? "" : "\n") + std::string("write an array of tables with double brackets: `[[…]]`");
  diagnostics.report(Kind::duplicate_key, span,
                     named && !reason.starts_with("cannot insert") ? fmt::format("{} is defined twice", quote(path))
                                                                   : with_backticks(reason),
                     help);
}

}  // namespace

void report_toml_error(const Source& source, const toml::parse_error& error, Diagnostics& diagnostics) {
  const Complaint complaint = take_apart(error.description());
  const toml::source_position begin = error.source().begin;
  const std::uint32_t line = std::min(begin.line, static_cast<std::uint32_t>(source.line_starts.size()));
  Span span{std::max(line, 1u), std::max(begin.column, 1u), 1};
  if (complaint.reason.starts_with("cannot redefine") || complaint.reason.starts_with("cannot insert")) {
    report_duplicate(source, span, complaint.reason, diagnostics);
    return;
  }
  span.column = source.span_at(source.offset_of(span.line, span.column)).column;  // never past the end of the line
  Advice advice = advice_for(complaint);
  if (advice.message == kUnclosed) {
    if (const std::optional<Span> string = unclosed_string(source, span.line)) {
      span = *string;
    } else {
      advice = {"", "", kControl, "use an escape such as `\\t`"};
    }
  }
  if (advice.message == kNoValue || is_about_number_or_date(complaint)) span = word_at(source, span);
  diagnostics.report(Kind::toml_syntax, span,
                     advice.message.empty() ? with_backticks(complaint.reason) : std::string(advice.message),
                     std::string(advice.help));
}

}  // namespace x0x::policyc
