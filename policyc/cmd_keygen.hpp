// `x0x-policyc keygen`: a key pair in minisign's own files.
//
// tests/policyc/keys_cli_test.cpp.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "policyc/minisign.hpp"

namespace CLI {
class App;
}

namespace x0x::policyc {

struct KeygenOptions {
  std::string public_path, secret_path;
  std::string comment;  // empty: says what the file is
  bool no_password = false;
  PasswordSource password;
  PasswordCost cost;
  bool force = false;
};

int run_keygen(const KeygenOptions& options, std::ostream& out);

// Registers the subcommand; when it is chosen, `run` becomes what main has to call.
void add_keygen_command(CLI::App& app, std::function<int()>& run);

}  // namespace x0x::policyc
