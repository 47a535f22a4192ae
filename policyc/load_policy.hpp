// A policy for reading: from TOML, or from a table somebody already compiled.
//
// A table's signatures are not checked here: these commands show what a table says, `verify` who vouches for
// it.
#pragma once

#include <string>

#include "policyc/compile.hpp"

namespace x0x::policyc {

struct LoadedPolicy {
  Policy policy;
  CompiledPolicy compiled;
  std::string name;  // as given on the command line
};

// Throws UserError; the diagnostics of a broken TOML file have been printed to standard error by then.
LoadedPolicy load_policy(const std::string& path);

bool looks_like_table(Bytes file);

// The command a rule number stands for.
struct RuleName {
  std::uint32_t entry, command;
  std::uint32_t line;  // 0: the policy came from a table
};
RuleName rule_name(const LoadedPolicy& loaded, std::uint32_t rule);

}  // namespace x0x::policyc
