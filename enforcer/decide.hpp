// Says yes or no. Pure: no I/O, no allocation, no clock; the default is no.
//
// tests/enforcer/decide_test.cpp compares it with a linear scan over the source policy, with RE2 for the templates.
#pragma once

#include "enforcer/blob_view.hpp"
#include "schema/wire_format.hpp"

namespace x0x {

// Far apart in bits, so that no single fault in memory turns one into the other.
enum class Decision : std::uint32_t { allow = 0x5a3c96e1, deny = 0xa5c3691e };

struct Request {
  const std::uint8_t* pair = nullptr;  // 64 bytes: agent id, machine id
  Bytes argv_block;                    // every token followed by a NUL
  bool cwd_present = false;
  std::uint64_t stdin_bytes = 0;
  std::uint32_t timeout_ms = 0;  // 0: as long as the rule allows
};

struct Verdict {
  Decision decision = Decision::deny;
  wire::DenialReason reason = wire::DenialReason::exec_disabled;  // means something only with deny
  std::uint32_t rule = blob::kNone;                               // set once an argv has matched
};

// The one place that turns a decision into "run it". Whatever is not exactly `allow` is a denial.
constexpr bool is_allow(Decision decision) { return decision == Decision::allow; }

bool in_window(const BlobView& table, std::uint64_t now_secs);
Verdict decide(const BlobView& table, const Request& request, std::uint64_t now_secs);

}  // namespace x0x
