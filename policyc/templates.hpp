// What the two templates match, for checks on the policy text itself. The enforcer has its own matcher; tests
// compare both with RE2. tests/policyc/templates_test.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "schema/blob_format.hpp"

namespace x0x::policyc {

// ^[1-9][0-9]{0,5}$
inline bool matches_int(std::string_view text) {
  if (text.empty() || text.size() > blob::kIntMaxDigits || text[0] == '0') return false;
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The offsets from which the rest of `text` is a URL path: ^/[A-Za-z0-9/_.-]{0,256}$ without `..`.
inline std::vector<std::size_t> url_path_starts(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.-";
  std::vector<std::size_t> starts;
  for (std::size_t at = text.size(); at > 0; --at) {
    const char c = text[at - 1];
    if (kAllowed.find(c) == std::string_view::npos || text.size() - at > blob::kUrlPathMaxBytes) break;
    if (c == '.' && at < text.size() && text[at] == '.') break;
    if (c == '/') starts.push_back(at - 1);
  }
  return starts;
}

}  // namespace x0x::policyc
