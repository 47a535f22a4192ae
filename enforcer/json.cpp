#include "enforcer/json.hpp"

namespace x0x {

void Json::raw(std::string_view text) {
  full_ = full_ || text.size() > room_.size() - used_;
  if (full_) return;
  memcpy(room_.data() + used_, text.data(), text.size());
  used_ += text.size();
}

const char* Json::copy(const char* format) {
  for (; *format != '\0' && *format != '%'; ++format) raw({*format == '\'' ? "\"" : format, 1});
  return *format == '%' ? format + 1 : format;
}

void Json::natural(std::uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
  raw(text);
}

void Json::digits(std::uint64_t number, unsigned count) {
  while (count-- > 0) raw({&"0123456789abcdef"[number >> (4 * count) & 15], 1});
}

void Json::value(Hex hex) {
  if (hex.bytes.data() == nullptr) return raw("null");
  const bool uuid = hex.bytes.size() == 16;
  raw("\"");
  for (std::size_t i = 0; i < hex.bytes.size(); ++i) {
    if (uuid && i >= 4 && i <= 10 && i % 2 == 0) raw("-");
    digits(hex.bytes[i], 2);
  }
  raw("\"");
}

void Json::value(Time time) {
  if (time == Time{}) return raw("null");
  const std::uint64_t milliseconds = static_cast<std::uint64_t>(time);
  const time_t seconds = static_cast<time_t>(milliseconds / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32];
  const std::size_t n = strftime(stamp, sizeof stamp, "\"%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(stamp + n, sizeof stamp - n, ".%03uZ\"", static_cast<unsigned>(milliseconds % 1000));
  raw(stamp);
}

void Json::value(Bytes text) {
  if (text.data() == nullptr) return raw("null");
  raw("\"");
  for (std::size_t i = 0, length = 0; i < text.size() && !full_; i += length != 0 ? length : 1) {
    length = utf8_length(text, i);
    std::uint32_t code = length == 0 ? 0xfffd : length == 1 ? text[i] : text[i] & (0x7fu >> length);
    for (std::size_t k = 1; k < length; ++k) code = code << 6 | (text[i + k] & 0x3fu);
    const char plain[] = {'\\', static_cast<char>(code)};
    if (code >= 0x20 && code < 0x7f) {
      raw(code == '"' || code == '\\' ? std::string_view{plain, 2} : std::string_view{plain + 1, 1});
    } else if (code < 0x10000) {
      raw("\\u"), digits(code, 4);
    } else {
      raw("\\u"), digits(0xd7c0 + (code >> 10), 4), raw("\\u"), digits(0xdc00 + (code & 0x3ff), 4);
    }
  }
  raw("\"");
}

}  // namespace x0x
