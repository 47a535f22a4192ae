// From TOML to a Policy, with every problem of the file reported.
//
// A policy that is returned has passed every check; `enabled = false` excuses nothing.
// tests/policyc/parse_test.cpp, corpus_test.cpp.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"
#include "policyc/source.hpp"

namespace x0x::policyc {

// Parses, checks and lints. Nothing when there was an error; warnings alone do not stop it. Diagnostics are
// in the order of the file.
std::optional<Policy> parse_policy(const Source& source, Diagnostics& diagnostics);

// The tables of the language and the keys each may have, as the parser knows them.
struct TableKeys {
  std::string_view table;  // as authors write it: `[exec]`
  std::vector<std::string_view> keys;
};
const std::vector<TableKeys>& all_table_keys();

// The first table that has this key.
std::optional<std::string_view> table_of_key(std::string_view key);

}  // namespace x0x::policyc
