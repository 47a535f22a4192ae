#include "policyc/render.hpp"

#include <doctest/doctest.h>

namespace x0x::policyc {
namespace {

std::string render(const std::string& text, Span span, std::string help = "", bool colour = false) {
  Diagnostics diagnostics;
  diagnostics.report(Kind::unknown_template, span, "message", std::move(help));
  return render_human(make_source("policy.toml", text), diagnostics.all()[0], colour);
}

TEST_CASE("place, line, caret and help") {
  CHECK(render("a\n  argv = [\"kill\", \"<INTEGER>\"]\n", {2, 20, 9}, "did you mean `<INT>`?") ==
        "policy.toml:2:20: error[E021]: message\n"
        "    2 |   argv = [\"kill\", \"<INTEGER>\"]\n"
        "      |                    ^^^^^^^^^\n"
        "  help: did you mean `<INT>`?\n");
  CHECK(render("x", {1, 1, 1}, "one\ntwo").ends_with("  help: one\n  help: two\n"));
}

TEST_CASE("the caret stands under its character whatever is before it") {
  CHECK(render("\tx", {1, 2, 1}).find("    1 |     x\n      |     ^\n") != std::string::npos);
  CHECK(render("\xe4\xb8\xadx", {1, 2, 1}).find("| \xe4\xb8\xadx\n      |   ^\n") != std::string::npos);
  CHECK(render("e\xcc\x81x", {1, 3, 1}).find("\n      |  ^\n") != std::string::npos);
  CHECK(render("\xe2\x80\xaex", {1, 2, 1}).find("| \\u{202e}x\n      |         ^\n") != std::string::npos);
  CHECK(render("\xe2\x80\xaex", {1, 1, 1}).find("      | ^^^^^^^^\n") != std::string::npos);
  CHECK(render("ab", {1, 3, 1}).find("      |   ^\n") != std::string::npos);
}

TEST_CASE("nothing from the file reaches the terminal as it is") {
  const std::string shown = render("\x1b[2J\x07\xff\xe2\x81\xa6\x7f", {1, 1, 1});
  for (const char c : shown) CHECK((c == '\n' || (c >= 0x20 && c < 0x7f)));
  Diagnostics diagnostics;
  diagnostics.report(Kind::nul_byte, {1, 1, 1}, "m");
  const Source evil = make_source("a\x1b]0;b", "x");
  CHECK(render_human(evil, diagnostics.all()[0], false).find('\x1b') == std::string::npos);
}

TEST_CASE("a long line is cut around the caret") {
  const std::string shown = render(std::string(100000, 'a') + "XYZ" + std::string(100000, 'b'), {1, 100001, 3});
  CHECK(shown.size() < 400);
  CHECK(shown.find("aaaXYZbbb") != std::string::npos);
  const std::size_t line = shown.find("| …") + 2, caret_line = shown.find("      | ", line) + 8;
  // The ellipsis is three bytes and one column.
  CHECK(shown.find("XYZ") - line - 2 == shown.find("^^^") - caret_line);
}

TEST_CASE("lines with six digits keep their gutter") {
  const std::string shown = render(std::string(123455, '\n') + "xy", {123456, 2, 1});
  CHECK(shown.find("123456 | xy\n       |  ^\n") != std::string::npos);
}

TEST_CASE("colours only when asked for") {
  CHECK(render("x", {1, 1, 1}).find('\x1b') == std::string::npos);
  CHECK(render("x", {1, 1, 1}, "", true).find("\x1b[1;31merror[E021]\x1b[0m") != std::string::npos);
}

TEST_CASE("a file shows its first hundred problems and counts the rest") {
  Diagnostics diagnostics;
  for (int i = 0; i < 150; ++i) diagnostics.report(Kind::nul_byte, {1, 1, 1}, "m");
  const std::string shown = render_human(make_source("f", "x"), diagnostics, false);
  CHECK(shown.find("f: 50 more not shown") != std::string::npos);
  std::size_t count = 0;
  for (std::size_t at = shown.find("error["); at != std::string::npos; at = shown.find("error[", at + 1)) ++count;
  CHECK(count == 100);
}

TEST_CASE("problems are counted in words") {
  CHECK(count_problems(1, 0) == "1 error");
  CHECK(count_problems(2, 1) == "2 errors, 1 warning");
  CHECK(count_problems(0, 3) == "3 warnings");
}

}  // namespace
}  // namespace x0x::policyc
