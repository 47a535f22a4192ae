// `x0x-policyc audit verify`: is this audit log what the enforcer wrote, whole and in order?
//
// tests/policyc/cmd_audit_test.cpp.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace x0x::policyc {

struct AuditVerifyOptions {
  std::vector<std::string> logs;  // in any order; `-` is standard input
  std::string head = {};          // empty: not given
  std::optional<std::uint64_t> min_seq = {};
  bool json = false;
  bool progress = false;  // on standard error, when it takes seconds
};

// The report goes to `out`, breaks to `err` unless it is JSON.
int run_audit_verify(const AuditVerifyOptions& options, std::ostream& out, std::ostream& err);

}  // namespace x0x::policyc
