// Templates and byte classes against RE2, byte by byte where that is possible.
#include "enforcer/text.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/reference.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

bool is_url_path(const std::string& token) { return token.starts_with('/') && is_url_tail(bytes(token).subspan(1)); }

bool splits(const std::string& block, std::uint32_t argc) {
  Argv argv;
  return argv.split(bytes(block), argc) && !has_forbidden_byte(bytes(block));
}

}  // namespace

TEST_CASE("forbidden bytes are the nine of the contract, the one that stands for a NUL, and no other") {
  const std::string forbidden(";|&><`$\n\0\xff", 10);
  for (int b = 0; b < 256; ++b) {
    const std::string token(1, static_cast<char>(b)), block = "x" + token + std::string("y\0", 2);
    CHECK_MESSAGE(splits(block, 1) == (forbidden.find(token) == std::string::npos), b);
  }
}

TEST_CASE("an argv block is taken apart at its NULs, as many as there are tokens") {
  const std::string block("ls\0\0-l\0", 7);
  Argv argv;
  REQUIRE(argv.split(bytes(block), 3));
  CHECK(as_text(argv.token(0)) == "ls");
  CHECK(as_text(argv.token(1)) == "");
  CHECK(as_text(argv.token(2)) == "-l");
  for (const std::uint32_t argc : {0u, 1u, 2u, 4u, 0xffffffffu}) CHECK_FALSE(splits(block, argc));
  CHECK_FALSE(splits(block + "x", 3));  // the last token goes on
  CHECK(splits("", 0));
  CHECK_FALSE(splits("", 1));
  CHECK_FALSE(splits("x", 0));
}

TEST_CASE("every NUL is found, wherever in a word it stands and whatever stands beside it") {
  for (std::size_t size = 1; size <= 20; ++size)
    for (std::size_t a = 0; a < size; ++a)
      for (const char filler : {'\x01', 'x', '\x7f', '\x80', '\xfe'}) {
        std::string block(size, filler);
        block[a] = block.back() = 0;
        const bool two = a + 1 < size;
        Argv argv;
        REQUIRE(argv.split(bytes(block), two ? 2 : 1));
        CHECK(argv.starts[1] == a + 1);
        if (two) CHECK(argv.starts[2] == size);
      }
}

TEST_CASE("an argv longer than any rule is still looked through") {
  for (const std::uint32_t argc : {blob::kMaxArgc, blob::kMaxArgc + 1, 5000u}) {
    std::string block;
    for (std::uint32_t i = 0; i < argc; ++i) block += std::string("t\0", 2);
    CHECK(splits(block, argc));
    CHECK_FALSE(splits(block, argc - 1));
    block[block.size() - 2] = ';';
    CHECK_FALSE(splits(block, argc));
  }
}

TEST_CASE("<INT> agrees with RE2 on every string of up to 7 characters over a reduced alphabet") {
  const std::string alphabet = "019+a \n";
  std::string token;
  std::size_t tried = 0;
  const auto extend = [&](const auto& self) -> void {
    ++tried;
    REQUIRE(is_int(bytes(token)) == reference_is_int(token));
    if (token.size() == 7) return;
    for (const char c : alphabet) {
      token.push_back(c);
      self(self);
      token.pop_back();
    }
  };
  extend(extend);
  CHECK(tried == 960800);
}

TEST_CASE("<INT> agrees with RE2 on every byte at every place") {
  for (std::size_t length = 1; length <= 7; ++length)
    for (std::size_t place = 0; place < length; ++place)
      for (int b = 0; b < 256; ++b) {
        std::string token(length, '7');
        token[place] = static_cast<char>(b);
        REQUIRE(is_int(bytes(token)) == reference_is_int(token));
      }
}

TEST_CASE("<INT> refuses digits of other scripts") {
  for (const char* token : {"１２", "٣", "²", "1２"}) CHECK_FALSE(is_int(bytes(token)));
}

TEST_CASE("<URL_PATH> agrees with RE2 on every string of up to 6 characters over a reduced alphabet") {
  const std::string alphabet = "/.a-?";
  std::string token;
  const auto extend = [&](const auto& self) -> void {
    REQUIRE(is_url_path(token) == reference_is_url_path(token));
    if (token.size() == 6) return;
    for (const char c : alphabet) {
      token.push_back(c);
      self(self);
      token.pop_back();
    }
  };
  extend(extend);
}

TEST_CASE("<URL_PATH> agrees with RE2 on every byte at every place and around its length limit") {
  for (const std::size_t length : {1u, 2u, 3u, 255u, 256u, 257u, 258u, 300u}) {
    const std::string path = "/" + std::string(length - 1, 'p');
    REQUIRE(is_url_path(path) == reference_is_url_path(path));
    for (std::size_t place : {std::size_t{0}, length / 2, length - 1})
      for (int b = 0; b < 256; ++b) {
        std::string changed = path;
        changed[place] = static_cast<char>(b);
        REQUIRE(is_url_path(changed) == reference_is_url_path(changed));
      }
  }
}

TEST_CASE("UTF-8: what the standard allows and nothing else") {
  for (const std::string& good : {std::string(""), std::string("plain"), std::string("é"), std::string("\u0800"),
                                  std::string("\uffff"), std::string("\U00010000"), std::string("\U0010ffff"),
                                  std::string("\xed\x9f\xbf"), std::string("\xee\x80\x80"), std::string("a\0b", 3)})
    CHECK_MESSAGE(is_utf8(bytes(good)), good);
  for (const char* bad : {"\x80",
                          "\xbf",
                          "\xc0\x80",
                          "\xc1\xbf",
                          "\xc3",
                          "\xc3\x28",
                          "\xe0\x80\x80",
                          "\xe0\x9f\xbf",
                          "\xed\xa0\x80",
                          "\xed\xbf\xbf",
                          "\xe2\x82",
                          "\xe2\x28\xa1",
                          "\xf0\x80\x80\x80",
                          "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80",
                          "\xff",
                          "\xfe",
                          "\xf0\x9f\x92",
                          "ok\xe2\x82\xff"})
    CHECK_MESSAGE(!is_utf8(bytes(std::string(bad))), bad);
}
