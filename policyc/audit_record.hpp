// One line of the audit log, as far as the chain and the sessions need it: docs/audit.md says what it holds.
//
// Strict: the enforcer writes these fields first, in this order and without spaces, so a line that differs was not
// written by it. tests/policyc/audit_record_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "enforcer/verify.hpp"

namespace x0x::policyc {

// More than the largest record: 64 KiB of argv, each byte of which may be six in JSON, and what surrounds it.
inline constexpr std::size_t kMaxAuditLineBytes = 1u << 20;

struct AuditRecord {
  std::uint64_t seq = 0;
  Digest prev{};
  std::string_view ts, event;
  std::uint64_t torn_bytes = 0;  // of lines a crash left just before this one
  std::string_view request_id;   // empty: none
  bool spawn_failed = false;     // a denial of a request that has a record already
};

// Nothing: not a record. The views are into `line`, which comes without its newline.
std::optional<AuditRecord> parse_audit_record(std::string_view line);

// 64 lower-case hexadecimal digits, both ways.
std::optional<Digest> parse_digest(std::string_view hex);
std::string_view digest_hex(const Digest& digest, char (&room)[65]);

}  // namespace x0x::policyc
