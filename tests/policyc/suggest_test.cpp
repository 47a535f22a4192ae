#include "policyc/suggest.hpp"

#include <doctest/doctest.h>

#include <string>

#include <array>

namespace x0x::policyc {
namespace {

TEST_CASE("the distance counts single-letter slips") {
  CHECK(edit_distance("exec", "exec") == 0);
  CHECK(edit_distance("exce", "exec") == 1);
  CHECK(edit_distance("exe", "exec") == 1);
  CHECK(edit_distance("Max-Stdout-Bytes", "max_stdout_bytes") == 0);
  CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("a suggestion is a slip away, and the nearest one") {
  constexpr std::array<std::string_view, 3> kWords = {"max_stdout_bytes", "max_stderr_bytes", "env"};
  CHECK(nearest("max_stdot_bytes", kWords) == "max_stdout_bytes");
  CHECK(nearest("max_stder_bytes", kWords) == "max_stderr_bytes");
  CHECK(nearest("evn", kWords) == "env");
  CHECK_FALSE(nearest("network", kWords).has_value());
  CHECK_FALSE(nearest(std::string(100000, 'x'), kWords).has_value());
}

}  // namespace
}  // namespace x0x::policyc
