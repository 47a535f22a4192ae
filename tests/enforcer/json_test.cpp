#include "enforcer/json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/table.hpp"

using namespace x0x;
using x0x::test::bytes;

namespace {

template <class F>
std::string written(F write, std::size_t room = 4096) {
  std::string buffer(room, '#');
  Json json({buffer.data(), buffer.size()});
  write(json);
  return std::string(json.view());
}

std::string text(const std::string& value) {
  return written([&](Json& json) { json.write("%", bytes(value)); });
}

}  // namespace

TEST_CASE("a format is copied, with ' as a double quote and % as the next value") {
  CHECK(written([](Json& json) {
          json.write("{'a':%,'b':%,'c':%,", 1u, true, "x").write("'d':[%,%,{}],'e':{}}", 2, std::string_view("3"));
        }) == R"({"a":1,"b":true,"c":"x","d":[2,"3",{}],"e":{}})");
  CHECK(written([](Json& json) { json.write(""); }).empty());
}

TEST_CASE("what is absent is null") {
  CHECK(written([](Json& json) { json.write("[%,%,%,%,%]", Bytes{}, Hex{}, Time{0}, -1, 0); }) ==
        "[null,null,null,null,0]");
}

TEST_CASE("times are RFC 3339 in UTC with milliseconds, ids are UUIDs, digests are lower-case hex") {
  const std::uint8_t id[16] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0, 1, 2, 3, 4, 5, 6, 0xff};
  CHECK(written([](Json& json) { json.write("%", Time{1'800'000'000'007}); }) == "\"2027-01-15T08:00:00.007Z\"");
  CHECK(written([&](Json& json) { json.write("%", Hex{id}); }) == "\"12345678-9abc-def0-0001-0203040506ff\"");
  CHECK(written([&](Json& json) { json.write("%", Hex{{id, 4}}); }) == "\"12345678\"");
  CHECK(written([](Json& json) { json.write("%", ~std::uint64_t{0}); }) == "18446744073709551615");
}

TEST_CASE("quotes, newlines, escape sequences, bidirectional marks and bad bytes are shown escaped") {
  CHECK(text("a\"b\\c") == R"("a\"b\\c")");
  CHECK(text("a\nb\x1b[31m\x7f") == R"("a\u000ab\u001b[31m\u007f")");
  CHECK(text("\xc3\xa1\xe2\x80\xae\xe2\x80\x8b") == R"("\u00e1\u202e\u200b")");
  CHECK(text("a b~") == R"("a b~")");
  CHECK(text("\xef\xbf\xbf\xf0\x90\x80\x80") == R"("\uffff\ud800\udc00")");
  CHECK(text("\xf0\x9f\x98\x80") == R"("\ud83d\ude00")");
  CHECK(text("a\xff\xc3z\xed\xa0\x80") == R"("a\ufffd\ufffdz\ufffd\ufffd\ufffd")");
  CHECK(text(std::string("\0", 1)) == R"("\u0000")");
}

TEST_CASE("any bytes give one line of ASCII that a JSON reader accepts") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string value(random() % 40, '\0');
    for (char& c : value) c = static_cast<char>(random());
    const std::string json = text(value);
    for (const char c : json) REQUIRE((c >= 0x20 && c < 0x7f));
    const auto parsed = nlohmann::json::parse(json);
    if (nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::ignore) ==
        nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace))
      CHECK(parsed.get<std::string>() == value);  // valid UTF-8 comes back as it was
  }
}

TEST_CASE("a text is cut off at kMaxJsonText") {
  const std::string fits(kMaxJsonText, 'x'), cut = fits + "y";
  for (const std::string& value : {fits, cut})
    CHECK(written([&](Json& json) { json.write("%", bytes(value)); }, 2 * kMaxJsonText) == '"' + fits + '"');
}

TEST_CASE("text that does not fit is dropped and said so, and nothing is written past the room") {
  for (std::size_t room = 0; room < 40; ++room) {
    std::string buffer(64, '#');
    Json json({buffer.data(), room});
    json.write("{'name':%,'number':%}", "a\nb", 12345u);
    CHECK(json.full() == (room < 34));
    CHECK(json.view().size() <= room);
    CHECK(buffer.substr(room) == std::string(64 - room, '#'));
  }
}
