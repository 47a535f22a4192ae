#include "policyc/timestamp.hpp"

#include <doctest/doctest.h>

using namespace x0x::policyc;

TEST_CASE("times survive both ways") {
  for (const std::uint64_t secs : {0ull, 1ull, 951'782'400ull, 1'800'000'000ull, 4'102'444'799ull, 253'402'300'799ull})
    CHECK(parse_utc(format_utc(secs)) == secs);
  CHECK(format_utc(1'797'552'000) == "2026-12-18T00:00:00Z");
}

TEST_CASE("offsets move a time, and what is not a time is refused") {
  CHECK(parse_utc("2026-12-18T01:00:00+01:00") == 1'797'552'000);
  CHECK(parse_utc("2026-12-17T18:30:00-05:30") == 1'797'552'000);
  for (const char* bad : {"", "2026-12-18", "2026-12-18T00:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                          "2026-12-18T24:00:00Z", "1969-12-31T23:59:59Z", "2026-12-18T00:00:00.5Z",
                          "2026-12-18T00:00:00+1:00", "2026-12-18T00:00:00Zx", "-026-12-18T00:00:00Z"})
    CHECK_MESSAGE(!parse_utc(bad).has_value(), bad);
}

TEST_CASE("durations") {
  CHECK(parse_duration("30d") == 30ull * 86400);
  CHECK(parse_duration("1d12h") == 36ull * 3600);
  CHECK(parse_duration("2w") == 14ull * 86400);
  CHECK(parse_duration("45m") == 2700ull);
  CHECK(parse_duration("90s") == 90ull);
  for (const char* bad : {"", "0d", "30", "d", "1y", "-1d", "1.5d", "99999999999999999999d", "40000d", "1d x"})
    CHECK_MESSAGE(!parse_duration(bad).has_value(), bad);
}
