// The subcommands. Each registers its options and help with the command line and, when chosen, leaves what to
// do in `run`; its file holds the rest.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "policyc/password.hpp"

namespace x0x::policyc {

void add_check_command(CLI::App& app, std::function<int()>& run);
void add_compile_command(CLI::App& app, std::function<int()>& run);
void add_keygen_command(CLI::App& app, std::function<int()>& run);
void add_sign_command(CLI::App& app, std::function<int()>& run);
void add_verify_command(CLI::App& app, std::function<int()>& run);
void add_inspect_command(CLI::App& app, std::function<int()>& run);
void add_decompile_command(CLI::App& app, std::function<int()>& run);
void add_explain_command(CLI::App& app, std::function<int()>& run);
void add_replay_command(CLI::App& app, std::function<int()>& run);
void add_audit_command(CLI::App& app, std::function<int()>& run);

inline constexpr std::uint64_t kMaxTomlNumber = INT64_MAX;  // what a policy file could say too

// A whole number in decimal digits, from `least` to `most`. Left alone, CLI11 takes -1 for 2^64 - 1 and 010 for 8.
std::uint64_t parse_number(const std::string& option, const std::string& text, std::uint64_t least, std::uint64_t most);

template <class Number>
CLI::Option* add_number_option(CLI::App& command, const std::string& name, Number& number, std::uint64_t least,
                               std::uint64_t most, const std::string& description, const std::string& type = "N") {
  return command
      .add_option_function<std::string>(
          name,
          [&number, name, least, most](const std::string& text) {
            number = static_cast<Number>(parse_number(name, text, least, most));
          },
          description)
      ->type_name(type);
}

// --password-fd
CLI::Option* add_password_option(CLI::App& command, PasswordSource& password);

// --format human|json
void add_format_option(CLI::App& command, bool& json);

}  // namespace x0x::policyc
