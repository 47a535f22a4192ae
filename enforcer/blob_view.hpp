// A decision table that has been checked from the first byte to the last.
//
// open() makes one linear pass and accepts exactly the bytes the compiler would write: every order, padding,
// count and index is compared with the only value it may have. After it every read below is total. Shown by
// tests/enforcer/blob_view_test.cpp (one table per fault) and tests/enforcer/corruption_test.cpp (every bit).
#pragma once

#include "enforcer/cursor.hpp"
#include "enforcer/verify.hpp"
#include "schema/blob_format.hpp"

namespace x0x {

// A string inside the table: NUL-terminated in place, so it can go to execve as it is. Absent: data() is
// null.
struct Text {
  Bytes bytes;
  bool present() const { return bytes.data() != nullptr; }
  const char* c_str() const { return reinterpret_cast<const char*>(bytes.data()); }
};

struct Position {
  std::uint32_t parent;
  Bytes label;
  std::uint32_t rule;
  std::uint32_t pair;
  std::uint8_t kind;
  std::uint8_t templates;
  std::uint8_t width;
};

struct Entry {
  std::uint32_t pair;
  std::uint32_t first_rule;
  std::uint64_t max_duration_secs;
  Text description;
};

struct Rule {
  std::uint32_t entry;
  std::uint32_t position;
  std::uint32_t options;
};

// What a rule asks for beyond its argv. A rule without options has present == false and everything else
// unset.
struct Options {
  bool present;
  std::uint32_t flags;
  std::uint32_t first_item, env_count, writable_count, allow_count, deny_count;
  const std::uint8_t* sha256;
  Text exe, reason, cwd;
  std::uint64_t max_duration_secs, max_stdout_bytes, max_stderr_bytes, max_stdin_bytes;
  std::uint64_t cpu_secs, memory_bytes, file_bytes, open_files, processes;
};

// The limits that hold for one rule: the policy's, tightened by its entry and by itself.
struct Caps {
  std::uint64_t stdout_bytes, stderr_bytes, stdin_bytes, duration_secs;
  std::uint64_t warn_stdout_bytes, warn_stderr_bytes, warn_duration_secs;
};

std::uint64_t hash_label(Bytes label);

// The slot where a lookup of this child starts; `mask` is the number of slots less one.
std::uint32_t home_slot(std::uint32_t parent, std::uint8_t kind, std::uint64_t label_hash, std::uint32_t mask);

class BlobView {
 public:
  static Result<BlobView> open(VerifiedBytes verified);
  BlobView() = default;

  Bytes payload() const { return payload_; }
  bool enabled() const { return (header_u32(blob::kHeaderFlags) & blob::kFlagEnabled) != 0; }
  std::uint64_t policy_version() const { return header_u64(blob::kHeaderPolicyVersion); }
  std::uint64_t not_before() const { return header_u64(blob::kHeaderNotBefore); }
  std::uint64_t expires() const { return header_u64(blob::kHeaderExpires); }
  std::uint32_t max_concurrent_per_agent() const { return header_u32(blob::kHeaderMaxConcurrentPerAgent); }
  std::uint32_t max_concurrent_total() const { return header_u32(blob::kHeaderMaxConcurrentTotal); }
  Caps global_caps() const;
  Text name() const { return text(payload_.data() + blob::kHeaderName); }
  Text default_cwd() const { return text(payload_.data() + blob::kHeaderDefaultCwd); }
  Text audit_log_path() const { return text(payload_.data() + blob::kHeaderAuditLogPath); }
  Text audit_tasklist_id() const { return text(payload_.data() + blob::kHeaderAuditTasklistId); }

  std::uint32_t audience_count() const { return header_u32(blob::kHeaderAudienceCount); }
  std::uint32_t entry_count() const { return header_u32(blob::kHeaderEntryCount); }
  std::uint32_t rule_count() const { return header_u32(blob::kHeaderRuleCount); }
  std::uint32_t position_count() const { return header_u32(blob::kHeaderPositionCount); }
  std::uint32_t slot_count() const { return header_u32(blob::kHeaderSlotCount); }

  Text item(std::uint32_t i) const { return text(items_ + i * blob::kTextRefBytes); }
  Entry entry(std::uint32_t i) const;
  Rule rule(std::uint32_t i) const;
  Options options(std::uint32_t rule_index) const;
  Caps caps(std::uint32_t rule_index) const;
  Position position(std::uint32_t i) const;
  std::uint8_t templates(std::uint32_t i) const {
    return positions_[std::size_t{i} * blob::kPositionBytes + blob::kPositionTemplates];
  }

  // The child of `parent` with this kind and label, or 0.
  std::uint32_t child(std::uint32_t parent, std::uint8_t kind, Bytes label, std::uint64_t label_hash) const;

 private:
  friend class Validator;
  std::uint32_t header_u32(std::size_t field) const { return load_u32(payload_.data() + field); }
  std::uint64_t header_u64(std::size_t field) const { return load_u64(payload_.data() + field); }
  Text text(const std::uint8_t* ref) const;

  Bytes payload_;
  const std::uint8_t* entries_ = nullptr;
  const std::uint8_t* rules_ = nullptr;
  const std::uint8_t* options_ = nullptr;
  const std::uint8_t* items_ = nullptr;
  const std::uint8_t* positions_ = nullptr;
  const std::uint8_t* slots_ = nullptr;
  const std::uint8_t* labels_ = nullptr;
  const std::uint8_t* texts_ = nullptr;
};

}  // namespace x0x
