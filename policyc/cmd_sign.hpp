// `x0x-policyc sign`: one more signature on a table, made here or by the stock minisign.
//
// Nothing is signed that a node could not open. tests/policyc/keys_cli_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "policyc/password.hpp"

namespace x0x::policyc {

struct SignOptions {
  std::string table;
  std::string key;                       // a secret key file, or
  std::string minisig;                   // a signature that exists already, and
  std::vector<std::string> public_keys;  // who may have made it
  std::string output;                    // empty: the table itself
  std::string comment;                   // empty: what is signed
  PasswordSource password;
  bool force = false;
};

int run_sign(const SignOptions& options, std::ostream& out);

}  // namespace x0x::policyc
