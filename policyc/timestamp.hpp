// Unix seconds and RFC 3339 in UTC, both ways. tests/policyc/timestamp_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace x0x::policyc {

std::string format_utc(std::uint64_t secs);  // 2026-12-18T00:00:00Z

// `2026-12-18T00:00:00Z` or with an offset like `+01:00`; whole seconds, not before 1970.
std::optional<std::uint64_t> parse_utc(const std::string& text);

// `30d`, `12h`, `45m`, `90s`, `2w`, or several: `1d12h`. More than zero seconds, at most 100 years.
std::optional<std::uint64_t> parse_duration(const std::string& text);

std::uint64_t now_secs();

// The time a build is dated with: SOURCE_DATE_EPOCH when it is set, so that builds can be repeated.
std::uint64_t build_time_secs();

}  // namespace x0x::policyc
