// A decision table that has been checked from the first byte to the last.
//
// open() makes one linear pass and accepts exactly the bytes the compiler would write: every order, padding, count and
// index is compared with the only value it may have. After it every read below is total. Shown by
// tests/enforcer/blob_view_test.cpp (one table per fault) and tests/enforcer/corruption_test.cpp (every bit).
#pragma once

#include <cstring>

#include "enforcer/text.hpp"
#include "enforcer/verify.hpp"

namespace x0x {

// A string inside the table: NUL-terminated in place, so it can go to execve as it is. Absent: data() is null.
struct Text {
  Bytes bytes;
  bool present() const { return bytes.data() != nullptr; }
  const char* c_str() const { return reinterpret_cast<const char*>(bytes.data()); }
};

// Pair, Shape, Template, Rule and Caps are laid out as their records are.
struct Pair {
  std::uint8_t key[blob::kPairBytes];  // agent id, machine id
  std::uint32_t first_shape, shape_count;
};

// What remains of a rule when its texts are taken away: how many tokens, and which of them are templates.
struct Shape {
  std::uint32_t argc, first_rule, first_template, template_count;
};

struct Template {
  std::uint32_t piece_bytes, token;  // piece_bytes 0: <INT>; otherwise <URL_PATH> after this many fixed bytes
};

struct Entry {
  std::uint32_t pair, first_rule;
  std::uint64_t max_duration_secs;
  Text description;
};

struct Rule {
  std::uint32_t entry, shape, pieces, options;
};

// What a rule asks for beyond its argv. A rule without options has present == false and everything else unset.
struct Options {
  bool present;
  std::uint32_t flags, env_count, writable_count, allow_count, deny_count, first_item;
  const std::uint8_t* sha256;
  Text exe, reason, cwd;
  std::uint64_t max_duration_secs, max_stdout_bytes, max_stderr_bytes, max_stdin_bytes;
  std::uint64_t limits[5];  // cpu_secs, memory_bytes, file_bytes, open_files, processes
};

// The limits that hold for one rule: the policy's, tightened by its entry and by itself. No stdin at all is a cap of 0.
struct Caps {
  std::uint64_t stdout_bytes, stderr_bytes, stdin_bytes, duration_secs;
  std::uint64_t warn_stdout_bytes, warn_stderr_bytes, warn_duration_secs;
};

// Spreads keys over the slots and promises nothing more: a lookup compares the key itself.
std::uint64_t hash_bytes(std::uint64_t seed, Bytes bytes);

static_assert(sizeof(Pair) == blob::kPairRecordBytes && sizeof(Shape) == blob::kShapeBytes &&
              sizeof(Template) == blob::kTemplateBytes && sizeof(Rule) == blob::kRuleBytes);

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
  Text name() const { return text(payload_.data() + blob::kHeaderName); }
  Text default_cwd() const { return text(payload_.data() + blob::kHeaderDefaultCwd); }
  Text audit_log_path() const { return text(payload_.data() + blob::kHeaderAuditLogPath); }
  Text audit_tasklist_id() const { return text(payload_.data() + blob::kHeaderAuditTasklistId); }
  std::uint32_t audience_count() const { return header_u32(blob::kHeaderAudienceCount); }
  std::uint32_t pair_count() const { return header_u32(blob::kHeaderPairCount); }
  std::uint32_t shape_count() const { return header_u32(blob::kHeaderShapeCount); }
  std::uint32_t entry_count() const { return header_u32(blob::kHeaderEntryCount); }
  std::uint32_t rule_count() const { return header_u32(blob::kHeaderRuleCount); }
  std::uint32_t slot_count() const { return header_u32(blob::kHeaderSlotCount); }

  Pair pair(std::uint32_t i) const { return record<Pair>(pairs_, i); }
  Shape shape(std::uint32_t i) const { return record<Shape>(shapes_, i); }
  Template template_at(std::uint32_t i) const { return record<Template>(templates_, i); }
  Rule rule(std::uint32_t i) const { return record<Rule>(rules_, i); }
  Entry entry(std::uint32_t i) const;
  Bytes pieces(std::uint32_t rule) const;  // each token's fixed bytes, followed by a NUL
  Text item(std::uint32_t i) const { return text(items_ + std::size_t{i} * blob::kTextRefBytes); }
  Options options(std::uint32_t rule) const;
  Caps global_caps() const { return load<Caps>(payload_.data() + blob::kHeaderMaxStdoutBytes); }
  Caps caps(std::uint32_t rule) const;

  // The number of this pair, and of the first rule with this shape and this argv's pieces; kNone: there is none. The
  // argv has as many tokens as the shape and fits its templates. `limit`: meet no slot with a greater number; the one
  // with this number needs no comparison.
  std::uint32_t find_pair(const std::uint8_t* key, std::uint32_t limit = blob::kNone) const;
  std::uint32_t find_rule(std::uint32_t shape_number, const Argv& argv, std::uint32_t limit = blob::kNone) const;

 private:
  friend class Validator;
  std::uint32_t header_u32(std::size_t field) const { return load_u32(payload_.data() + field); }
  std::uint64_t header_u64(std::size_t field) const { return load_u64(payload_.data() + field); }
  Text text(const std::uint8_t* ref) const;
  template <class Record>
  static Record record(const std::uint8_t* section, std::uint32_t i) {
    return load<Record>(section + i * sizeof(Record));
  }
  template <class Matches>
  std::uint32_t find(std::uint64_t hash, std::uint32_t limit, Matches matches) const;

  Bytes payload_;
  const std::uint8_t *pairs_ = nullptr, *shapes_ = nullptr, *templates_ = nullptr, *entries_ = nullptr,
                     *rules_ = nullptr, *options_ = nullptr, *items_ = nullptr, *slots_ = nullptr, *pieces_ = nullptr,
                     *texts_ = nullptr;
};

}  // namespace x0x
