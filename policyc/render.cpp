#include "policyc/render.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

constexpr std::uint32_t kLongestLine = 120;  // code points shown of a line
constexpr std::uint32_t kBeforeCaret = 60;

struct Colours {
  const char *bold, *error, *warning, *dim, *reset;
};
constexpr Colours kColours = {"\x1b[1m", "\x1b[1;31m", "\x1b[1;35m", "\x1b[36m", "\x1b[0m"};
constexpr Colours kPlain = {"", "", "", "", ""};

// What one character of the file looks like here, and how many columns it takes.
struct Shown {
  std::string text;
  std::size_t width;
};

Shown show(CodePoint c, std::string_view bytes) {
  if (c.value == '\t') return {"    ", 4};
  if (!c.valid || is_control(c.value) || is_invisible(c.value)) {
    std::string escaped = escape_code_point(c);
    const std::size_t width = escaped.size();
    return {std::move(escaped), width};
  }
  return {std::string(bytes), display_width(c.value)};
}

struct Excerpt {
  std::string line, carets;
};

Excerpt excerpt_of(const Source& source, Span span) {
  const std::uint32_t first = span.column > kLongestLine - kBeforeCaret / 2 ? span.column - kBeforeCaret : 1;
  const std::size_t start = source.line_starts[span.line - 1];
  const std::string_view line = source.line(span.line);
  std::size_t at = source.offset_of(span.line, first) - start;
  Excerpt excerpt;
  std::size_t before = 0, under = 0;
  if (first > 1) {
    excerpt.line = "…";
    before = 1;
  }
  std::uint32_t column = first;
  for (; at < line.size() && column < first + kLongestLine; ++column) {
    const CodePoint c = decode(line, at);
    const Shown shown = show(c, line.substr(at, c.bytes));
    excerpt.line += shown.text;
    if (column < span.column) before += shown.width;
    if (column >= span.column && column < span.column + span.length) under += shown.width;
    at += c.bytes;
  }
  if (at < line.size()) excerpt.line += "…";
  excerpt.carets = std::string(before, ' ') + std::string(std::max<std::size_t>(under, 1), '^');
  return excerpt;
}

std::string indented(std::string_view text, std::string_view label) {
  std::string lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += fmt::format("  {}: {}\n", label, text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string render_human(const Source& source, const Diagnostic& diagnostic, bool colour) {
  const Colours& colours = colour ? kColours : kPlain;
  const Span& span = diagnostic.span;
  const bool error = diagnostic.severity == Severity::error;
  std::string out =
      fmt::format("{}{}:{}:{}: {}{}[{}]{}: {}{}{}\n", colours.bold, escape(source.name), span.line, span.column,
                  error ? colours.error : colours.warning, error ? "error" : "warning", info(diagnostic.kind).code,
                  colours.reset, colours.bold, diagnostic.message, colours.reset);
  if (span.line >= 1 && span.line <= source.line_starts.size()) {
    const Excerpt excerpt = excerpt_of(source, span);
    const std::string number = fmt::format("{:>5}", span.line);
    out += fmt::format("{}{} |{} {}\n", colours.dim, number, colours.reset, excerpt.line);
    out += fmt::format("{}{:{}} |{} {}{}{}\n", colours.dim, "", number.size(), colours.reset,
                       error ? colours.error : colours.warning, excerpt.carets, colours.reset);
  }
  if (!diagnostic.help.empty()) out += indented(diagnostic.help, "help");
  return out;
}

std::string render_human(const Source& source, const Diagnostics& diagnostics, bool colour) {
  std::string out;
  std::size_t shown = 0;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (shown++ == kMaxShown) break;
    out += render_human(source, diagnostic, colour);
  }
  if (diagnostics.all().size() > kMaxShown)
    out += fmt::format("{}: {} more not shown; `--format json` lists them all\n", escape(source.name),
                       diagnostics.all().size() - kMaxShown);
  return out;
}

std::string count_problems(std::size_t errors, std::size_t warnings) {
  if (warnings == 0) return count_of(errors, "error", "errors");
  if (errors == 0) return count_of(warnings, "warning", "warnings");
  return count_of(errors, "error", "errors") + ", " + count_of(warnings, "warning", "warnings");
}

}  // namespace x0x::policyc
