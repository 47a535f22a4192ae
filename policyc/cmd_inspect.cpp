// `x0x-policyc inspect` and `decompile`: what a table says, for people, for programs, and as a policy again.
#include <fmt/format.h>

#include <algorithm>

#include "policyc/atomic_file.hpp"
#include "policyc/commands.hpp"
#include "policyc/emit.hpp"
#include "policyc/inspect.hpp"
#include "policyc/parse.hpp"
#include "policyc/policy_json.hpp"
#include "policyc/read_file.hpp"
#include "policyc/signatures.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

LoadedPolicy load_table_only(const std::string& path) {
  if (!looks_like_table(read_file(path, blob::kMaxFileBytes)))
    throw UserError(fmt::format("{}: bad_magic: {}", path, fault_message(Fault::bad_magic)), kExitRefused);
  return load_policy(path);
}

int run_inspect(const std::string& table, bool json) {
  const LoadedPolicy loaded = load_table_only(table);
  const SignedTable parts = take_apart(read_file(table, blob::kMaxFileBytes), table);
  fmt::print("{}", json ? inspect_json(loaded, parts.signatures) : inspect_human(loaded, parts.signatures));
  return kExitOk;
}

// A table that another program made and signed may say what no policy file can: a number above TOML's, a name that
// `env` must not have.
void check_round_trip(const LoadedPolicy& loaded, const std::string& toml) {
  Diagnostics diagnostics;
  const Source source = make_source(loaded.name, toml);
  const std::optional<Policy> policy = parse_policy(source, diagnostics);
  if (policy && emit(*policy) == loaded.compiled.payload) return;
  const auto error = std::ranges::find(diagnostics.all(), Severity::error, &Diagnostic::severity);
  const std::string why = error == diagnostics.all().end() ? "" : ": " + error->message;
  throw UserError(fmt::format("{}: no policy file says the same as this table{}", loaded.name, why), kExitRefused);
}

int run_decompile(const std::string& table, const std::string& output) {
  const LoadedPolicy loaded = load_table_only(table);
  const std::string toml = policy_toml(loaded.policy);
  check_round_trip(loaded, toml);
  if (output.empty())
    fmt::print("{}", toml);
  else
    write_file_atomically(output, {reinterpret_cast<const std::uint8_t*>(toml.data()), toml.size()});
  return kExitOk;
}

}  // namespace

void add_inspect_command(CLI::App& app, std::function<int()>& run) {
  auto* command = app.add_subcommand("inspect", "Show everything a table says");
  auto table = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("TABLE", *table, "A compiled table")->required();
  add_format_option(*command, *json);
  command->footer(
      "Signatures are listed, not checked: `x0x-policyc verify` does that.\n\n"
      "Example:\n"
      "  x0x-policyc inspect exec-policy.x0xp --format json | jq .exec.allow\n\n"
      "Exit status: 0 shown, 1 not a valid table, 2 usage or I/O.");
  command->callback([&run, table, json] { run = [table, json] { return run_inspect(*table, *json); }; });
}

void add_decompile_command(CLI::App& app, std::function<int()>& run) {
  auto* command = app.add_subcommand("decompile", "Turn a table back into a policy file");
  auto table = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  command->add_option("TABLE", *table, "A compiled table")->required();
  command->add_option("-o,--output", *output, "Write here instead of to standard output")->type_name("FILE");
  command->footer(
      "Compiling the result gives the same payload, byte for byte.\n\n"
      "Example:\n"
      "  x0x-policyc decompile exec-policy.x0xp -o exec-acl.toml\n\n"
      "Exit status: 0 written, 1 not a valid table, 2 usage or I/O.");
  command->callback([&run, table, output] { run = [table, output] { return run_decompile(*table, *output); }; });
}

}  // namespace x0x::policyc
