// The parsers of the parts of a policy file, one file each; parse.cpp puts them together.
#pragma once

#include <string_view>
#include <vector>

#include "policyc/policy.hpp"
#include "policyc/read_value.hpp"

namespace x0x::policyc {

// [exec] and everything below it, into policy.exec and policy.entries.
void parse_exec(Reader& reader, const toml::table& table, Policy& policy);

// One [[exec.allow]]; true when its ids and all its commands can be compared with those of other entries.
bool parse_entry(Reader& reader, const toml::table& table, const Exec& exec, Entry& entry);

// One [[exec.allow.commands]] of `entry`, whose own settings are already read; true when its argv is valid.
bool parse_command(Reader& reader, const toml::table& table, const Exec& exec, const Entry& entry, Command& command);

std::vector<std::string_view> exec_keys();
std::vector<std::string_view> entry_keys();
std::vector<std::string_view> command_keys();
std::vector<std::string_view> limits_keys();

}  // namespace x0x::policyc
