// `x0x-policyc keygen`: a key pair in minisign's own files.
//
// tests/policyc/keys_cli_test.cpp.
#pragma once

#include <iosfwd>
#include <string>

#include "policyc/minisign.hpp"

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

}  // namespace x0x::policyc
