#include "policyc/timestamp.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text[0] != '-';
}

// The offset's seconds east of UTC.
std::optional<std::int64_t> read_offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  std::int64_t hours = 0, minutes = 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
      !read_number(text.substr(1, 2), hours) || !read_number(text.substr(4, 2), minutes) || hours > 23 || minutes > 59)
    return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

}  // namespace

std::string format_utc(std::uint64_t secs) {
  constexpr std::uint64_t kEndOfYear9999 = 253'402'300'799;
  if (secs > kEndOfYear9999) return fmt::format("{} seconds after 1970", secs);
  const std::time_t when = static_cast<std::time_t>(secs);
  std::tm parts{};
  gmtime_r(&when, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::optional<std::uint64_t> parse_utc(const std::string& text) {
  const std::string_view view = text;
  std::tm tm{};
  if (view.size() < 20 || view[4] != '-' || view[7] != '-' || (view[10] != 'T' && view[10] != 't' && view[10] != ' ') ||
      view[13] != ':' || view[16] != ':' || !read_number(view.substr(0, 4), tm.tm_year) ||
      !read_number(view.substr(5, 2), tm.tm_mon) || !read_number(view.substr(8, 2), tm.tm_mday) ||
      !read_number(view.substr(11, 2), tm.tm_hour) || !read_number(view.substr(14, 2), tm.tm_min) ||
      !read_number(view.substr(17, 2), tm.tm_sec))
    return std::nullopt;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  const std::tm asked = tm;
  const std::optional<std::int64_t> offset = read_offset(view.substr(19));
  const std::int64_t secs = timegm(&tm);
  if (!offset || tm.tm_mon != asked.tm_mon || tm.tm_mday != asked.tm_mday || tm.tm_hour != asked.tm_hour ||
      tm.tm_min != asked.tm_min || tm.tm_sec != asked.tm_sec || secs - *offset < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(secs - *offset);
}

std::optional<std::uint64_t> parse_duration(const std::string& text) {
  constexpr std::uint64_t kMost = std::uint64_t{36525} * 86400;
  std::uint64_t total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t digits = rest.find_first_not_of("0123456789");
    std::uint64_t number = 0;
    if (digits == std::string_view::npos || !read_number(rest.substr(0, digits), number)) return std::nullopt;
    const std::string_view units = "smhdw";
    const std::uint64_t seconds[] = {1, 60, 3600, 86400, 604800};
    const std::size_t unit = units.find(rest[digits]);
    if (unit == std::string_view::npos || number > kMost / seconds[unit]) return std::nullopt;
    total += number * seconds[unit];
    if (total > kMost) return std::nullopt;
    rest.remove_prefix(digits + 1);
  }
  return total > 0 ? std::optional(total) : std::nullopt;
}

std::uint64_t now_secs() { return static_cast<std::uint64_t>(std::time(nullptr)); }

std::uint64_t build_time_secs() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return now_secs();
  std::uint64_t secs = 0;
  if (!read_number(std::string_view(epoch), secs))
    throw UserError("SOURCE_DATE_EPOCH is not a whole number of seconds");
  return secs;
}

}  // namespace x0x::policyc
