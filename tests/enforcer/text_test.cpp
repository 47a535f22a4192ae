// Templates and byte classes against RE2, byte by byte where that is possible.
#include "enforcer/text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/support/reference.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

bool is_url_path(const std::string& token) { return token.starts_with('/') && is_url_tail(bytes(token).subspan(1)); }

}  // namespace

TEST_CASE("forbidden bytes are the nine of the contract, the one that stands for a NUL, and no other, at every place") {
  const std::string forbidden(";|&><`$\n\0\xff", 10);
  for (int b = 0; b < 256; ++b) {
    const bool allowed = forbidden.find(static_cast<char>(b)) == std::string::npos;
    CHECK_MESSAGE((is_forbidden(static_cast<std::uint8_t>(b)) == 0) == (allowed || b == 0), b);
    for (const std::size_t size : {2u, 15u, 16u, 17u, 31u, 32u, 33u, 50u})
      for (std::size_t place = 0; place + 1 < size; ++place) {
        std::string block(size, 'x');
        block.back() = '\0';
        block[place] = static_cast<char>(b);
        // a NUL ends a token
        REQUIRE(is_argv(bytes(block)) == (allowed || b == 0));
      }
  }
}

TEST_CASE("an argv block has at least one token, and a NUL after each") {
  const std::string block("ls\0\0-l\0", 7);
  CHECK(is_argv(bytes(block)));
  CHECK_FALSE(is_argv(bytes(block + "x")));  // the last token goes on
  CHECK_FALSE(is_argv({}));
  CHECK_FALSE(is_argv(bytes("x")));
  CHECK(is_argv(bytes(std::string(1, '\0'))));  // one token, and it is empty
  Bytes rest = bytes(block);
  for (const char* token : {"ls", "", "-l"}) CHECK(as_text(next_token(rest)) == token);
  CHECK(rest.empty());
}

TEST_CASE("a forbidden byte is found in blocks of every size, and nothing beyond the last byte is looked at") {
  for (std::size_t size = 2; size <= 70; ++size) {
    const std::unique_ptr<std::uint8_t[]> block(new std::uint8_t[size]);  // of exactly this size, so that ASan sees
    std::fill_n(block.get(), size, std::uint8_t{'x'});
    block[size - 1] = 0;
    CHECK(is_argv({block.get(), size}));
    for (std::size_t place = 0; place + 1 < size; ++place) {
      block[place] = ';';
      REQUIRE_FALSE(is_argv({block.get(), size}));
      block[place] = 'x';
    }
  }
}

TEST_CASE("an argv longer than any rule is still looked through") {
  for (const std::uint32_t argc : {blob::kMaxArgc, blob::kMaxArgc + 1, 5000u}) {
    std::string block;
    for (std::uint32_t i = 0; i < argc; ++i) block += std::string("t\0", 2);
    CHECK(is_argv(bytes(block)));
    block[block.size() - 2] = ';';
    CHECK_FALSE(is_argv(bytes(block)));
  }
  CHECK(is_argv(bytes(std::string(5000, '\0'))));  // nothing but NULs
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

TEST_CASE("UTF-8: the first and the last of every length, and a sequence cut short whatever follows it") {
  for (const std::string& good :
       {std::string("\xc2\x80"), std::string("\xdf\xbf"), std::string("\xe0\xa0\x80"), std::string("\xef\xbf\xbf"),
        std::string("\xf0\x90\x80\x80"), std::string("\xf4\x8f\xbf\xbf")})
    for (std::size_t before = 0; before < 18; ++before) {
      const std::string text = std::string(before, 'a') + good;
      CHECK(is_utf8(bytes(text)));
      for (std::size_t n = before + 1; n < text.size(); ++n) CHECK_FALSE(is_utf8(bytes(text).first(n)));
    }
}

TEST_CASE("UTF-8: every byte is looked at, and none beyond the last") {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::unique_ptr<std::uint8_t[]> text(new std::uint8_t[size]);  // of exactly this size, so that ASan sees
    std::fill_n(text.get(), size, std::uint8_t{'a'});
    CHECK(is_utf8({text.get(), size}));
    for (std::size_t bad = 0; bad < size; ++bad) {
      text[bad] = 0x80;
      CHECK_FALSE(is_utf8({text.get(), size}));
      text[bad] = 'a';
    }
  }
}
