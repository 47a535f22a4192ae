#include "policyc/toml_error.hpp"

#include <doctest/doctest.h>

#include "tests/policyc/front_end.hpp"

namespace x0x::policyc {
namespace {

std::string told(const std::string& text) {
  const Checked checked = check_text(text);
  REQUIRE(checked.diagnostics.all().size() == 1);
  const Diagnostic& d = checked.diagnostics.all()[0];
  return fmt::format("{} +{} {} ({})", checked.summary(), d.span.length, d.message, d.help);
}

TEST_CASE("syntax errors say what to do") {
  CHECK(told("a = \"x\n") ==
        "E003 1:5 +2 the string is not closed on its line (close it with `\"`; for several lines use "
        "`\"\"\"`, for a control character use an escape such as `\\t`)");
  CHECK(told("a = 'x\n").find("E003 1:5 +2 the string is not closed on its line") == 0);
  CHECK(told("a = [1").find("the file ends inside an array (close it with `]`)") != std::string::npos);
  CHECK(told("a = {b = 1").find("the file ends inside a table (close it with `}`)") != std::string::npos);
  CHECK(told("a = \"x").find("the file ends inside a string") != std::string::npos);
  CHECK(told("[a").find("the file ends inside a table header") != std::string::npos);
  CHECK(told("a = [1 2]") == "E003 1:8 +1 expected comma or closing `]`, found `2` (put a comma between the elements)");
  CHECK(told("a = nope, 1").find("E003 1:5") == 0);
  CHECK(told("a = True") ==
        "E003 1:5 +4 this is not a TOML value (booleans are `true` and `false`; text needs quotes: `\"…\"`)");
  CHECK(told("a b = 1") == "E003 1:3 +1 expected `=`, found `b` (write `key = value`)");
  CHECK(told("a =\n").find("a value is missing after `=`") != std::string::npos);
  CHECK(told("a = \"\\q\"").find("unknown escape sequence `\\q`") != std::string::npos);
  CHECK(told("a = 1 2").find("expected a comment or whitespace, found `2`") != std::string::npos);
  CHECK(told("a = {b = 1,}").find("a comma before the closing `}`") != std::string::npos);
  CHECK(told("a = 'x' 'y'").find("found `'`") != std::string::npos);
  CHECK(told("a = 1 \x1b[2K").find('\x1b') == std::string::npos);
}

TEST_CASE("a number or date that is wrong is underlined from its first digit") {
  CHECK(told("a=9223372036854775808 # x\n") ==
        "E003 1:3 +19 this number is too large (numbers go from -9223372036854775808 to 9223372036854775807)");
  CHECK(told("a = [1, 007]").find("E003 1:9 +3 leading zeroes are prohibited") == 0);
  CHECK(told("a = 1__0").find("E003 1:5 +4 ") == 0);
  CHECK(told("a = 2020-13-01\n").find("E003 1:5 +10 expected month between 1 and 12") == 0);
  CHECK(told("a = 2020-02-30T00:00:00Z").find("E003 1:5 +20 expected day") == 0);
  CHECK(told("a = 25:00:00").find("E003 1:5 +8 expected hour") == 0);
}

TEST_CASE("a control character in a closed string is not a string left open") {
  CHECK(told("a = \"\x01\"\n") == "E003 1:6 +1 the string holds a control character (use an escape such as `\\t`)");
}

TEST_CASE("an error after the last character is not put past the end of the line") {
  CHECK(told("a = \"\"\"x\n").find("E003 1:9 +1 the file ends inside a string") == 0);
}

TEST_CASE("a second definition says where the first one is") {
  CHECK(told("a = 1\nb = 2\na = 3\n") == "E004 3:1 +1 `a` is defined twice (it is first defined on line 1)");
  CHECK(told("[x]\na = 1\n[[y]]\na = 2\n[[y]]\na = 3\n a  = 4\n") ==
        "E004 7:2 +1 `a` is defined twice (it is first defined on line 6)");
  CHECK(told("[exec]\n[policy]\n[exec]\n") == "E004 3:2 +4 `exec` is defined twice (it is first defined on line 1)");
  CHECK(told("[[a.b]]\nx = 1\n[a.b]\n")
            .find("E004 3:2 +3 `a.b` is defined twice (it is first defined on line 1\n"
                  "write an array of tables with double brackets") == 0);
  CHECK(told("k = { a = 1, a = 2 }").find("E004 1:14 +1 `a` is defined twice") == 0);
  CHECK(told("a.b = 1\na.b = 2\n").find("E004 2:1 +3 `a.b` is defined twice (it is first defined on line 1)") == 0);
}

TEST_CASE("an error at the very end has a place") {
  for (const std::string_view text : {"a", "a =", "[", "\"", "a = \"\"\"", "a = [", "a = {", "\n\n[["}) {
    const Checked checked = check_text(std::string(text));
    REQUIRE(checked.diagnostics.all().size() == 1);
    CHECK(checked.diagnostics.all()[0].span.line >= 1);
    CHECK(checked.diagnostics.all()[0].span.line <= checked.source.line_starts.size());
  }
}

}  // namespace
}  // namespace x0x::policyc
