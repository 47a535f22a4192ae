// x0x-policyc: one subcommand per task. The compiler itself is cmd_compile.cpp: parse, check, lower, emit,
// sign.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "policyc/commands.hpp"
#include "policyc/secret.hpp"
#include "policyc/user_error.hpp"

int main(int argc, char** argv) {
  using namespace x0x::policyc;
  CLI::App app{"Compiles allowlists of commands into signed decision tables, and explains what they allow.",
               "x0x-policyc"};
  app.set_version_flag("--version", "x0x-policyc " X0X_VERSION);
  app.require_subcommand(1);
  app.footer(
      "From nothing to a table:\n"
      "  x0x-policyc keygen -p policy.pub -s policy.key\n"
      "  x0x-policyc check exec-acl.toml\n"
      "  x0x-policyc compile exec-acl.toml -o exec-policy.x0xp --key policy.key --expires-in 30d\n"
      "  x0x-policyc verify exec-policy.x0xp --trust policy.pub\n\n"
      "`x0x-policyc COMMAND --help` explains each.\n\n"
      "Exit status: 0 success, 1 problems found or request denied, 2 usage or I/O.");

  std::function<int()> run;
  add_check_command(app, run);
  add_compile_command(app, run);
  add_keygen_command(app, run);
  add_sign_command(app, run);
  add_verify_command(app, run);
  add_inspect_command(app, run);
  add_decompile_command(app, run);
  add_explain_command(app, run);
  add_replay_command(app, run);

  try {
    app.parse(argc, argv);
    start_crypto();
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  } catch (const UserError& error) {
    fmt::print(stderr, "x0x-policyc: {}\n", error.what());
    return error.exit_code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "x0x-policyc: {}\n", error.what());
    return kExitUsage;
  }
}
