#include "policyc/toml_text.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <toml++/toml.h>

#include "policyc/text.hpp"

namespace x0x::policyc {
namespace {

std::string limit_broken(const std::string& text) {
  Diagnostics diagnostics;
  const Source source = make_source("f", text);
  if (within_limits(source, diagnostics)) return "";
  const Diagnostic& d = diagnostics.all().at(0);
  return fmt::format("{}:{} {}", d.span.line, d.span.column, d.message);
}

std::string repeat(std::string_view piece, std::size_t times) {
  std::string all;
  for (; times > 0; --times) all += piece;
  return all;
}

TEST_CASE("nesting is counted outside strings and comments only") {
  CHECK(limit_broken("a = " + repeat("[", 32) + repeat("]", 32)).empty());
  CHECK(limit_broken("a = " + repeat("[", 33)) == "1:37 values are nested more than 32 deep");
  CHECK(limit_broken("a = \"" + repeat("[", 99) + "\"\n# " + repeat("{", 99)).empty());
  CHECK(limit_broken("a = '" + repeat("[", 99) + "\\'\nb = \"\\\"" + repeat("[", 99) + "\"").empty());
  CHECK(
      limit_broken("a = \"\"\"\n\"\" " + repeat("[", 99) + "\"\"\"\"\"\nb = ''' ' " + repeat("[", 99) + "'''").empty());
  CHECK(limit_broken("a = \"\"\nb = " + repeat("[", 33)) != "");
  CHECK(limit_broken(repeat("a = [[1]]\n", 1000)).empty());
}

TEST_CASE("a key may have 16 parts, a hundred thousand crash nothing") {
  CHECK(limit_broken("[" + repeat("a.", 15) + "a]").empty());
  CHECK(limit_broken("[" + repeat("a.", 16) + "a]") == "1:33 a key has more than 16 parts");
  CHECK(limit_broken(repeat("a.", 100000) + "a = 1") != "");
  CHECK(limit_broken(repeat("a = 1.5\n", 100)).empty());
}

TEST_CASE("the number of values is bounded") {
  CHECK(limit_broken("a = [" + repeat("1,", kMaxValues) + "]").find("more than 4000000 values") != std::string::npos);
}

// Every code point of the value must be found where it stands in the text.
void check_places(const std::string& literal) {
  const std::string text = "first = 1\n  key = " + literal + "\n";
  CAPTURE(text);
  const Source source = make_source("f", text);
  const std::string value = toml::parse(std::string_view(text))["key"].value<std::string>().value();
  std::size_t index = 0;
  for (std::size_t at = 0; at < value.size(); ++index) {
    const CodePoint c = decode(value, at);
    const Span place = place_in_string(source, {2, 9, 1}, index, 1);
    const std::string_view raw = std::string_view(text).substr(source.offset_of(place.line, place.column));
    CAPTURE(index);
    if (c.value == '\n' && raw[0] != '\\') {
      CHECK(raw.substr(0, raw[0] == '\r' ? 2 : 1).ends_with('\n'));
    } else if (raw[0] == '\\' && literal[0] == '"') {
      CHECK((place.length == 2 || place.length == 6 || place.length == 10));
    } else {
      CHECK(decode(raw, 0).value == c.value);
      CHECK(place.length == 1);
    }
    at += c.bytes;
  }
}

TEST_CASE("characters are found through every kind of string") {
  check_places(R"("plain")");
  check_places(R"("\t\u00e9\U0001f600x\\y\"z")");
  check_places(R"('no \t escapes')");
  check_places("\"caf\xc3\xa9 <X>\"");
  check_places("\"\"\"\nsecond line\n third\"\"\"");
  check_places("\"\"\"\r\nsecond\r\nthird\"\"\"");
  check_places("\"\"\"one \\\n    two \\  \n\n   three\"\"\"");
  check_places("\"\"\"\\\n  start \"\" quotes\"\"\"\"\"");
  check_places("'''\nliteral \\ line\nnext'''");
}

TEST_CASE("a range of characters is one underline, cut at the end of its line") {
  const Source source = make_source("f", "k = \"a\\u0062cd\"\nm = \"\"\"ab\ncd\"\"\"\n");
  const Span span = place_in_string(source, {1, 5, 1}, 0, 3);
  CHECK(span.column == 6);
  CHECK(span.length == 8);
  const Span cut = place_in_string(source, {2, 5, 1}, 1, 3);
  CHECK(cut.line == 2);
  CHECK(cut.length == 2);
}

TEST_CASE("many parts of a string are found as one part is, and it is read once") {
  const Source source = make_source("f", "k = \"\"\"a\\u0062<c>\nd<<e\"\"\"\n");
  const std::vector<Part> parts = {{0, 1}, {2, 2}, {4, 3}, {7, 1}, {8, 1}};
  const std::vector<Span> places = places_in_string(source, {1, 5, 1}, parts);
  REQUIRE(places.size() == parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CAPTURE(i);
    CHECK(places[i] == place_in_string(source, {1, 5, 1}, parts[i].first, parts[i].count));
  }
  CHECK(places_in_string(source, {1, 5, 1}, {}).empty());

  const std::size_t many = 200'000;  // read anew for each it would take minutes
  const Source large = make_source("f", "k = '" + repeat("<", many) + "'\n");
  std::vector<Part> each;
  for (std::size_t i = 0; i < many; ++i) each.push_back({i, 1});
  CHECK(places_in_string(large, {1, 5, 1}, each).back().column == many + 5);
}

TEST_CASE("an unclosed string is found by where it starts") {
  const Source source = make_source("f", "a = [\"x\", 'y', \"z]\nb = \"fine\" # it's\n");
  const auto span = unclosed_string(source, 1);
  REQUIRE(span.has_value());
  CHECK(span->column == 16);
  CHECK(span->length == 3);
  CHECK_FALSE(unclosed_string(source, 2).has_value());
}

}  // namespace
}  // namespace x0x::policyc
