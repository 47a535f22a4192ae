// "Did you mean": the nearest of a few known words. tests/policyc/suggest_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace x0x::policyc {

// Single-letter changes (insert, delete, replace, swap of neighbours) that turn one word into the other, not
// minding upper and lower case or `-` and `_`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest candidate when it is near enough to be a slip: one letter, or a third of a longer word.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace x0x::policyc
