// `x0x-policyc compile`: parse -> check -> lower -> emit -> sign, and a file that appears whole or not at
// all.
#include <fmt/format.h>
#include <unistd.h>

#include "policyc/atomic_file.hpp"
#include "policyc/cmd_check.hpp"
#include "policyc/commands.hpp"
#include "policyc/compile.hpp"
#include "policyc/hex.hpp"
#include "policyc/minisign.hpp"
#include "policyc/overwrite.hpp"
#include "policyc/parse.hpp"
#include "policyc/render.hpp"
#include "policyc/signatures.hpp"
#include "policyc/text.hpp"
#include "policyc/timestamp.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

struct CompileOptions {
  std::string file, output, key, expires_in, comment;
  PasswordSource password;
  std::uint64_t policy_version = 0;
  bool no_expiry = false, force = false, strict = false;
};

// The command line has the last word on the version; nothing is guessed.
void settle_version(const CompileOptions& options, Policy& policy) {
  if (options.policy_version != 0) policy.version = options.policy_version;
  if (!policy.version)
    throw UserError(
        fmt::format("{}: no version; set `version` in `[policy]` or pass --policy-version N", options.file));
}

void settle_expiry(const CompileOptions& options, Policy& policy) {
  if (options.no_expiry && !options.expires_in.empty())
    throw UserError("--no-expiry and --expires-in contradict each other");
  if (options.no_expiry && policy.expires)
    throw UserError(fmt::format("{}: `expires` is set in `[policy]`; --no-expiry contradicts it", options.file));
  if (!options.expires_in.empty()) {
    const std::optional<std::uint64_t> duration = parse_duration(options.expires_in);
    if (!duration)
      throw UserError(fmt::format("--expires-in {}: not a duration like 30d, 12h or 1d12h", quote(options.expires_in)));
    policy.expires = build_time_secs() + *duration;
  }
  if (!policy.expires && !options.no_expiry)
    throw UserError(fmt::format("{}: no expiry; set `expires` in `[policy]`, or pass --expires-in 30d or --no-expiry",
                                options.file));
  if (policy.not_before && policy.expires && *policy.not_before >= *policy.expires)
    throw UserError(fmt::format("the policy would expire at {}, before it begins at {}", format_utc(*policy.expires),
                                format_utc(*policy.not_before)));
}

void print_summary(const CompileOptions& options, const Policy& policy, const CompiledPolicy& compiled,
                   std::size_t file_bytes) {
  const BlobView& table = compiled.table;
  fmt::print("{}: {} version {}, {} in {}, {}, {} bytes\ndigest {}\n", escape(options.output),
             policy.name ? escape(*policy.name) : "unnamed policy", *policy.version,
             count_of(table.header().rule_count, "command", "commands"),
             count_of(table.header().entry_count, "entry", "entries"),
             policy.expires ? "expires " + format_utc(*policy.expires) : "never expires", file_bytes,
             to_hex(digest_of(compiled.payload).bytes));
  if (policy.expires && *policy.expires <= now_secs())
    fmt::print(stderr, "x0x-policyc: note: this policy has already expired; nodes will refuse it\n");
}

int run_compile(const CompileOptions& options) {
  std::string error;
  const std::optional<Source> source = load_source(options.file, error);
  if (!source) throw UserError(error);

  Diagnostics diagnostics;
  std::optional<Policy> policy = parse_policy(*source, diagnostics);
  std::optional<CompiledPolicy> compiled;
  if (policy) {
    settle_version(options, *policy);
    settle_expiry(options, *policy);
    compiled = compile_policy(*policy, diagnostics);
  }
  diagnostics.sort();
  if (options.strict) diagnostics.promote_warnings();
  fmt::print(stderr, "{}", render_human(*source, diagnostics, wants_colour(STDERR_FILENO)));
  if (!compiled || diagnostics.errors() > 0) {
    fmt::print(stderr, "{} in {}; nothing was written\n", count_problems(diagnostics.errors(), diagnostics.warnings()),
               escape(source->name));
    return kExitRefused;
  }

  if (!options.force && check_overwrite(options.output, compiled->table))
    fmt::print(stderr,
               "x0x-policyc: note: {} held version {} with other content; nodes that loaded it will refuse "
               "this one\n",
               escape(options.output), *policy->version);
  const SecretKey key = load_secret_key(options.key, options.password);
  const std::vector<std::uint8_t> file = sign_table(compiled->payload, key, options.comment);
  write_file_atomically(options.output, file);
  print_summary(options, *policy, *compiled, file.size());
  return kExitOk;
}

}  // namespace

void add_compile_command(CLI::App& app, std::function<int()>& run) {
  auto* command = app.add_subcommand("compile", "Compile a policy into a signed decision table");
  auto options = std::make_shared<CompileOptions>();
  command->add_option("FILE", options->file, "The policy; - reads standard input")->required();
  command->add_option("-o,--output", options->output, "The table to write, usually *.x0xp")
      ->required()
      ->type_name("OUT");
  command->add_option("--key", options->key, "Sign with this secret key, a minisign file")
      ->required()
      ->type_name("SECRET");
  add_password_option(*command, options->password);
  add_number_option(*command, "--policy-version", options->policy_version, 1, kMaxTomlNumber,
                    "Use this instead of `version` in `[policy]`");
  command->add_option("--expires-in", options->expires_in, "Expire this long after now: 30d, 12h, 1d12h")
      ->type_name("DURATION");
  command->add_flag("--no-expiry", options->no_expiry, "Make a table that never expires");
  command->add_option("--comment", options->comment, "Trusted comment, signed too; without it: name, version, digest")
      ->type_name("TEXT");
  command->add_flag("--strict", options->strict, "Treat warnings as errors");
  command->add_flag("--force", options->force, "Overwrite a table of a higher version, or a file that is no table");
  command->footer(
      "Example:\n"
      "  x0x-policyc compile exec-acl.toml -o exec-policy.x0xp --key policy.key --expires-in 30d\n\n"
      "The same policy, key and expiry give the same bytes. With --expires-in, SOURCE_DATE_EPOCH stands for "
      "now.\n\n"
      "Exit status: 0 written, 1 problems in the policy or a refusal to overwrite, 2 usage or I/O.");
  command->callback([&run, options] { run = [options] { return run_compile(*options); }; });
}

}  // namespace x0x::policyc
