#include "policyc/text.hpp"

#include <doctest/doctest.h>

namespace x0x::policyc {
namespace {

TEST_CASE("decoding steps over every byte and refuses what UTF-8 forbids") {
  CHECK(decode("a", 0).value == 'a');
  CHECK(decode("\xc3\xa9", 0).value == 0xe9);
  CHECK(decode("\xe2\x82\xac", 0).value == 0x20ac);
  CHECK(decode("\xf0\x9f\x98\x80", 0).value == 0x1f600);
  for (const std::string_view bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                     "\xf5\x80\x80\x80", "\xff", "\xe2\x82"}) {
    CHECK_FALSE(decode(bad, 0).valid);
    CHECK(decode(bad, 0).bytes == 1);
  }
  CHECK(count_code_points("a\xc3\xa9\xff") == 3);
}

TEST_CASE("invisible characters are found, letters are not") {
  for (const char32_t c : {0x200bu, 0x202eu, 0x2066u, 0xfeffu, 0xadu, 0xe0041u, 0x2028u, 0x3164u})
    CHECK(is_invisible(c));
  for (const char32_t c : {0x20u, 0xe9u, 0x4e2du, 0x1f600u, 0xfe0fu, 0x200au, 0x2010u}) CHECK_FALSE(is_invisible(c));
}

TEST_CASE("text from a file is escaped before it is shown") {
  CHECK(escape("a\x1b[2Kb") == "a\\u{1b}[2Kb");
  CHECK(escape("x\xe2\x80\xaey") == "x\\u{202e}y");
  CHECK(escape("\xff") == "\\x{ff}");
  CHECK(quote("a\nb") == "`a\\u{a}b`");
  CHECK(quote("abcdef", 3) == "`abc…`");
}

TEST_CASE("wide characters take two columns, combining marks none") {
  CHECK(display_width('a') == 1);
  CHECK(display_width(0x4e2d) == 2);
  CHECK(display_width(0x0301) == 0);
}

}  // namespace
}  // namespace x0x::policyc
