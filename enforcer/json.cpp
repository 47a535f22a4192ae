#include "enforcer/json.hpp"

#include <cstdio>
#include <cstring>
#include <ctime>

#include "enforcer/text.hpp"

namespace x0x {

Json& Json::raw(std::string_view text) {
  full_ = full_ || text.size() > room_.size() - used_;
  if (full_) return *this;
  std::memcpy(room_.data() + used_, text.data(), text.size());
  used_ += text.size();
  return *this;
}

// A value ends in a quote, digit, letter or closing bracket; only then does the next thing need a comma.
Json& Json::separate() { return used_ == 0 || std::strchr("{[:", room_[used_ - 1]) != nullptr ? *this : raw(","); }

Json& Json::natural(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
  return word(text);
}

Json& Json::digits(Bytes bytes) {
  for (const std::uint8_t b : bytes) raw({&"0123456789abcdef"[b >> 4], 1}).raw({&"0123456789abcdef"[b & 15], 1});
  return *this;
}

Json& Json::value(Hex hex) {
  return hex.bytes.data() == nullptr ? word("null") : separate().raw("\"").digits(hex.bytes).raw("\"");
}

Json& Json::value(Uuid uuid) {
  if (uuid.id == nullptr) return word("null");
  separate().raw("\"").digits({uuid.id, 4});
  for (std::size_t i = 4; i < 10; i += 2) raw("-").digits({uuid.id + i, 2});
  return raw("-").digits({uuid.id + 10, 6}).raw("\"");
}

Json& Json::value(Time time) {
  if (time.unix_milliseconds == 0) return word("null");
  const std::time_t seconds = static_cast<std::time_t>(time.unix_milliseconds / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32];
  const std::size_t n = std::strftime(stamp, sizeof stamp, "\"%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(stamp + n, sizeof stamp - n, ".%03uZ\"", static_cast<unsigned>(time.unix_milliseconds % 1000));
  return word(stamp);
}

Json& Json::escape(std::uint32_t unit) {
  const std::uint8_t bytes[2] = {static_cast<std::uint8_t>(unit >> 8), static_cast<std::uint8_t>(unit)};
  return raw("\\u").digits(bytes);
}

Json& Json::value(Bytes text) {
  if (text.data() == nullptr) return word("null");
  separate().raw("\"");
  for (std::size_t i = 0, length = 0; i < text.size() && !full_; i += length != 0 ? length : 1) {
    length = utf8_length(text, i);
    std::uint32_t code = length == 0 ? 0xfffd : length == 1 ? text[i] : text[i] & (0x7fu >> length);
    for (std::size_t k = 1; k < length; ++k) code = code << 6 | (text[i + k] & 0x3fu);
    const char plain = static_cast<char>(code);
    if (code == '"' || code == '\\') raw("\\");
    if (code >= 0x20 && code < 0x7f)
      raw({&plain, 1});
    else if (code < 0x10000)
      escape(code);
    else
      escape(0xd7c0 + (code >> 10)).escape(0xdc00 + (code & 0x3ff));
  }
  return raw("\"");
}

}  // namespace x0x
