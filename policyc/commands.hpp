// The subcommands. Each registers its options and help with the command line and, when chosen, leaves what to
// do in `run`; its file holds the rest.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

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

// --format human|json
void add_format_option(CLI::App& command, bool& json);

}  // namespace x0x::policyc
