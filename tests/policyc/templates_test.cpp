#include "policyc/templates.hpp"

#include <doctest/doctest.h>
#include <re2/re2.h>

#include <algorithm>
#include <string>

namespace x0x::policyc {
namespace {

TEST_CASE("integers and URL paths are what RE2 says they are") {
  const re2::RE2 integer("[1-9][0-9]{0,5}");
  const re2::RE2 path("/[A-Za-z0-9/_.-]{0,256}");
  std::uint32_t random = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const std::size_t length = round % 50 == 0 ? 250 + static_cast<std::size_t>(round / 50) % 20
                                               : static_cast<std::size_t>(round) % 9;
    for (std::size_t i = 0; i < length; ++i) {
      random = random * 1664525 + 1013904223;
      text += length > 200 ? "a/"[random >> 31] : "019a//..-%"[(random >> 20) % 10];
    }
    CAPTURE(text);
    CHECK(matches_int(text) == re2::RE2::FullMatch(text, integer));
    const auto starts = url_path_starts(text);
    for (std::size_t at = 0; at < text.size(); ++at) {
      const std::string rest = text.substr(at);
      const bool expected = re2::RE2::FullMatch(rest, path) && rest.find("..") == std::string::npos;
      CHECK((std::find(starts.begin(), starts.end(), at) != starts.end()) == expected);
    }
  }
}

}  // namespace
}  // namespace x0x::policyc
