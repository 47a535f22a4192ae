// Every number of a .x0xp file. docs/format.md specifies the bytes; schema/x0xp.ksy describes them to other
// languages; tests/schema/format_test.py holds the three together.
//
// Values here are on disk. They never change within a format version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace x0x::blob {

// ---- file: payload | signature records | trailer

inline constexpr std::uint64_t kMaxFileBytes = 256u << 20;

inline constexpr char kTrailerMagic[9] = "x0xsigs\n";
inline constexpr std::size_t kTrailerBytes = 16;  // u32 count, u32 bytes of all records, magic
inline constexpr std::uint32_t kMaxSignatures = 64;
inline constexpr std::size_t kKeyNumberBytes = 8;
inline constexpr std::size_t kSignatureBytes = 64;
inline constexpr std::size_t kSignatureFixedBytes = 137;  // key number, signature, global signature, u8 length
inline constexpr std::size_t kMaxTrustedCommentBytes = 255;

// ---- payload: a header, then sections of records in the order of its counts, without gaps
//
// Fields stand in the order of their bytes, so a record can be copied as it is.

inline constexpr char kMagic[9] = "x0xpol\r\n";
inline constexpr char kPurpose[9] = "exec-acl";
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kFlagEnabled = 1u << 0;
inline constexpr std::uint32_t kNone = 0xffffffff;  // "no rule", "no options", offset of an absent text

struct TextRef {
  std::uint32_t offset;  // into texts; kNone: absent
  std::uint32_t length;  // without the NUL
};
inline constexpr TextRef kAbsent = {kNone, 0};

struct Caps {
  std::uint64_t max_stdout_bytes;
  std::uint64_t max_stderr_bytes;
  std::uint64_t max_stdin_bytes;
  std::uint64_t max_duration_secs;
  std::uint64_t warn_stdout_bytes;
  std::uint64_t warn_stderr_bytes;
  std::uint64_t warn_duration_secs;
};

struct Header {
  char magic[8];
  char purpose[8];
  std::uint32_t format_version;
  std::uint32_t flags;
  std::uint64_t policy_version;
  std::uint64_t not_before;  // Unix seconds, 0 = none
  std::uint64_t expires;     // Unix seconds, 0 = none
  Caps caps;
  std::uint32_t max_concurrent_per_agent;
  std::uint32_t max_concurrent_total;
  TextRef name;
  TextRef default_cwd;
  TextRef audit_log_path;
  TextRef audit_tasklist_id;
  std::uint32_t audience_count;  // the first items
  std::uint32_t pair_count;
  std::uint32_t shape_count;
  std::uint32_t template_count;
  std::uint32_t pattern_count;
  std::uint32_t entry_count;
  std::uint32_t rule_count;
  std::uint32_t option_count;
  std::uint32_t item_count;
  std::uint32_t piece_bytes;
  std::uint32_t text_bytes;
};
inline constexpr std::size_t kHeaderBytes = 188;  // the struct is larger by what aligns it

// Pairs, and the patterns of a shape, are groups: sorted by tag, then by their bytes. A group has as many slots as
// records; a tag belongs to slot (tag * count) >> 32, and record number i says where slot i begins.

inline constexpr std::size_t kPairBytes = 64;  // agent id, machine id
struct Pair {
  std::uint32_t tag;    // upper half of the hash
  std::uint32_t start;  // number of the first pair of this slot or of a later one
  std::uint32_t first_shape;
  std::uint32_t shape_count;
  std::uint8_t key[kPairBytes];
};

// Which tokens of an argv are templates. The patterns of a pair that agree in this share one shape.
struct Shape {
  std::uint32_t first_template;
  std::uint32_t template_count;
  std::uint32_t first_pattern;
  std::uint32_t pattern_count;
};

// The last template of an argv comes first.
struct Template {
  std::uint32_t piece_bytes;  // 0: <INT>; otherwise <URL_PATH> after this many fixed bytes
  std::uint32_t after;        // tokens between it and the next template, or the end of the argv
};

// The argv of a rule, without what its templates stand for.
struct Pattern {
  std::uint32_t tag;     // upper half of the hash
  std::uint32_t start;   // number, within the shape, of the first pattern of this slot or of a later one
  std::uint32_t pieces;  // offset into pieces
  std::uint32_t piece_bytes;
  std::uint32_t rule;  // the first that has it
};

struct Entry {
  std::uint32_t pair;
  std::uint32_t first_rule;
  std::uint64_t max_duration_secs;  // 0 = the policy's
  TextRef description;
};

struct Rule {
  std::uint32_t entry;
  std::uint32_t pattern;
  std::uint32_t options;  // record number, or kNone
};

// What a rule asks for beyond its argv. 0: not set.
struct Options {
  std::uint32_t flags;
  std::uint32_t env_count;
  std::uint32_t writable_count;
  std::uint32_t allow_count;
  std::uint32_t deny_count;
  std::uint32_t first_item;
  std::uint8_t sha256[32];
  TextRef exe;
  TextRef reason;
  TextRef cwd;
  std::uint64_t max_duration_secs;
  std::uint64_t max_stdout_bytes;
  std::uint64_t max_stderr_bytes;
  std::uint64_t max_stdin_bytes;
  std::uint64_t limit_cpu_secs;
  std::uint64_t limit_memory_bytes;
  std::uint64_t limit_file_bytes;
  std::uint64_t limit_open_files;
  std::uint64_t limit_processes;
};

inline constexpr Options kNoOptions = {0, 0, 0, 0, 0, 0, {}, kAbsent, kAbsent, kAbsent, 0, 0, 0, 0, 0, 0, 0, 0, 0};

inline constexpr std::uint32_t kOptionNoStdin = 1u << 0;
inline constexpr std::uint32_t kOptionNoNetwork = 1u << 1;
inline constexpr std::uint32_t kOptionAuditHash = 1u << 2;
inline constexpr std::uint32_t kOptionHasSha256 = 1u << 3;
inline constexpr std::uint32_t kOptionHasWritable = 1u << 4;
inline constexpr std::uint32_t kOptionAll = (1u << 5) - 1;

// Of one record of each section, in their order. Pieces and texts are bytes.
inline constexpr std::uint64_t kRecordBytes[] = {
    sizeof(Pair),
    sizeof(Shape),
    sizeof(Template),
    sizeof(Pattern),
    sizeof(Entry),
    sizeof(Rule),
    sizeof(Options),
    sizeof(TextRef),
    1,
    1,
};

inline constexpr std::uint32_t kMaxShapes = 256;  // of one pair: what a decision may have to try
inline constexpr std::uint32_t kMaxProbes = 256;  // of one slot: what a lookup may have to try
inline constexpr std::uint32_t kMaxArgc = 1024;
inline constexpr std::uint32_t kMaxTokenBytes = 131071;  // what Linux lets execve take, without the NUL

// ---- the hash that tags are made of

inline constexpr std::uint64_t kHashFirst = 0x9e3779b97f4a7c15;   // 2^64 / golden ratio, odd
inline constexpr std::uint64_t kHashLength = 0xc2b2ae3d27d4eb4f;  // an odd constant of xxHash

// ---- the two templates, and what no token may hold

inline constexpr std::size_t kIntMaxDigits = 6;
inline constexpr std::size_t kUrlPathMaxBytes = 256;  // after the first slash
inline constexpr char kForbiddenBytes[] = {';', '|', '&', '>', '<', '`', '$', '\n', '\0'};

}  // namespace x0x::blob
