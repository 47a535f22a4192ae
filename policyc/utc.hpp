// Unix seconds as people and logs write them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <string>

namespace x0x::policyc {

// RFC 3339 in UTC. A second that has no four-digit year stays a number.
inline std::string format_utc(std::uint64_t seconds) {
  constexpr std::uint64_t kEndOfYear9999 = 253'402'300'799;
  if (seconds > kEndOfYear9999) return fmt::format("{} seconds after 1970", seconds);
  const std::time_t when = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&when, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace x0x::policyc
