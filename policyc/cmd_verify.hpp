// `x0x-policyc verify`: would a node with this trust file load this table, and who signed it?
//
// tests/policyc/verify_cli_test.cpp.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace x0x::policyc {

struct VerifyOptions {
  std::string table;
  std::string trust;
  std::vector<std::string> public_keys;  // known, but without a vote
  std::string detach;                    // empty: write nothing
  bool json = false;
  std::optional<std::uint64_t> now;  // Unix seconds; absent: the clock
};

// The report goes to `out`, a refusal in one line to `err`.
int run_verify(const VerifyOptions& options, std::ostream& out, std::ostream& err);

}  // namespace x0x::policyc
