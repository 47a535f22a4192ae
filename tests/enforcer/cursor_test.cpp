#include "enforcer/cursor.hpp"

#include <doctest/doctest.h>

using namespace x0x;

TEST_CASE("numbers are little-endian") {
  const std::uint8_t raw[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  Cursor cursor{Bytes(raw)};
  CHECK(cursor.u8() == 1);
  CHECK(cursor.u32() == 0x05040302);
  CHECK(cursor.u64() == 0x0d0c0b0a09080706);
  CHECK(cursor.at_end());
}

TEST_CASE("a read past the end fails, yields zero and stays failed") {
  const std::uint8_t raw[] = {1, 2, 3};
  Cursor cursor{Bytes(raw)};
  CHECK(cursor.u32() == 0);
  CHECK(cursor.failed());
  CHECK(cursor.u8() == 0);
  CHECK(cursor.u64() == 0);
  CHECK_FALSE(cursor.at_end());
}

TEST_CASE("a length near the top of 64 bits cannot wrap") {
  const std::uint8_t raw[16] = {};
  for (const std::uint64_t n : {std::uint64_t{17}, ~std::uint64_t{0}, ~std::uint64_t{0} - 15, std::uint64_t{1} << 63}) {
    Cursor cursor{Bytes(raw)};
    cursor.u8();
    CHECK(cursor.take(n).empty());
    CHECK(cursor.failed());
  }
}

TEST_CASE("taking nothing and taking everything succeed") {
  const std::uint8_t raw[] = {7, 8};
  Cursor cursor{Bytes(raw)};
  CHECK(cursor.take(0).size() == 0);
  CHECK(cursor.left() == 2);
  CHECK(cursor.take(2).size() == 2);
  CHECK(cursor.at_end());
}

TEST_CASE("what is there but must not be fails like what is not there") {
  const std::uint8_t raw[] = {1, 2, 3};
  Cursor cursor{Bytes(raw)};
  CHECK(cursor.u8() == 1);
  CHECK(cursor.fail().empty());
  CHECK(cursor.failed());
  CHECK(cursor.left() == 0);
  CHECK(cursor.u8() == 0);
  CHECK(cursor.take(0).empty());
  CHECK_FALSE(cursor.at_end());
}
