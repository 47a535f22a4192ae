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

// ---- payload header

inline constexpr char kMagic[9] = "x0xpol\r\n";
inline constexpr char kPurpose[9] = "exec-acl";
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kHeaderBytes = 188;

inline constexpr std::size_t kHeaderMagic = 0;
inline constexpr std::size_t kHeaderPurpose = 8;
inline constexpr std::size_t kHeaderFormatVersion = 16;
inline constexpr std::size_t kHeaderFlags = 20;
inline constexpr std::size_t kHeaderPolicyVersion = 24;
inline constexpr std::size_t kHeaderNotBefore = 32;  // Unix seconds, 0 = none
inline constexpr std::size_t kHeaderExpires = 40;    // Unix seconds, 0 = none
inline constexpr std::size_t kHeaderMaxStdoutBytes = 48;
inline constexpr std::size_t kHeaderMaxStderrBytes = 56;
inline constexpr std::size_t kHeaderMaxStdinBytes = 64;
inline constexpr std::size_t kHeaderMaxDurationSecs = 72;
inline constexpr std::size_t kHeaderWarnStdoutBytes = 80;
inline constexpr std::size_t kHeaderWarnStderrBytes = 88;
inline constexpr std::size_t kHeaderWarnDurationSecs = 96;
inline constexpr std::size_t kHeaderMaxConcurrentPerAgent = 104;
inline constexpr std::size_t kHeaderMaxConcurrentTotal = 108;
inline constexpr std::size_t kHeaderName = 112;             // text
inline constexpr std::size_t kHeaderDefaultCwd = 120;       // text
inline constexpr std::size_t kHeaderAuditLogPath = 128;     // text
inline constexpr std::size_t kHeaderAuditTasklistId = 136;  // text
inline constexpr std::size_t kHeaderAudienceCount = 144;    // the first items
inline constexpr std::size_t kHeaderPairCount = 148;
inline constexpr std::size_t kHeaderShapeCount = 152;
inline constexpr std::size_t kHeaderTemplateCount = 156;
inline constexpr std::size_t kHeaderEntryCount = 160;
inline constexpr std::size_t kHeaderRuleCount = 164;
inline constexpr std::size_t kHeaderOptionCount = 168;
inline constexpr std::size_t kHeaderItemCount = 172;
inline constexpr std::size_t kHeaderSlotCount = 176;
inline constexpr std::size_t kHeaderPieceBytes = 180;
inline constexpr std::size_t kHeaderTextBytes = 184;

inline constexpr std::uint32_t kFlagEnabled = 1u << 0;

// ---- sections, in this order, without gaps

inline constexpr std::uint32_t kNone = 0xffffffff;  // "no rule", "no options", offset of an absent text
inline constexpr std::size_t kTextRefBytes = 8;     // u32 offset into texts, u32 length without the NUL

inline constexpr std::size_t kPairBytes = 64;  // agent id, machine id

inline constexpr std::size_t kPairRecordBytes = 72;
inline constexpr std::size_t kPairRecordKey = 0;
inline constexpr std::size_t kPairRecordFirstShape = 64;
inline constexpr std::size_t kPairRecordShapeCount = 68;

inline constexpr std::size_t kShapeBytes = 16;
inline constexpr std::size_t kShapeArgc = 0;
inline constexpr std::size_t kShapeFirstRule = 4;  // that has it
inline constexpr std::size_t kShapeFirstTemplate = 8;
inline constexpr std::size_t kShapeTemplateCount = 12;

inline constexpr std::size_t kTemplateBytes = 8;
inline constexpr std::size_t kTemplatePieceBytes = 0;  // 0: <INT>; otherwise <URL_PATH> after this many fixed bytes
inline constexpr std::size_t kTemplateToken = 4;       // which token of the argv it is

inline constexpr std::size_t kEntryBytes = 24;
inline constexpr std::size_t kEntryPair = 0;
inline constexpr std::size_t kEntryFirstRule = 4;
inline constexpr std::size_t kEntryMaxDurationSecs = 8;  // 0 = the policy's
inline constexpr std::size_t kEntryDescription = 16;     // text

inline constexpr std::size_t kRuleBytes = 16;
inline constexpr std::size_t kRuleEntry = 0;
inline constexpr std::size_t kRuleShape = 4;
inline constexpr std::size_t kRulePieces = 8;    // offset into pieces; they go on to the next rule's
inline constexpr std::size_t kRuleOptions = 12;  // record number, or kNone

inline constexpr std::size_t kOptionsBytes = 152;
inline constexpr std::size_t kOptionsFlags = 0;
inline constexpr std::size_t kOptionsEnvCount = 4;
inline constexpr std::size_t kOptionsWritableCount = 8;
inline constexpr std::size_t kOptionsAllowCount = 12;
inline constexpr std::size_t kOptionsDenyCount = 16;
inline constexpr std::size_t kOptionsFirstItem = 20;
inline constexpr std::size_t kOptionsSha256 = 24;
inline constexpr std::size_t kOptionsExe = 56;              // text
inline constexpr std::size_t kOptionsReason = 64;           // text
inline constexpr std::size_t kOptionsCwd = 72;              // text
inline constexpr std::size_t kOptionsMaxDurationSecs = 80;  // this and the rest: 0 = not set
inline constexpr std::size_t kOptionsMaxStdoutBytes = 88;
inline constexpr std::size_t kOptionsMaxStderrBytes = 96;
inline constexpr std::size_t kOptionsMaxStdinBytes = 104;
inline constexpr std::size_t kOptionsLimitCpuSecs = 112;
inline constexpr std::size_t kOptionsLimitMemoryBytes = 120;
inline constexpr std::size_t kOptionsLimitFileBytes = 128;
inline constexpr std::size_t kOptionsLimitOpenFiles = 136;
inline constexpr std::size_t kOptionsLimitProcesses = 144;

inline constexpr std::uint32_t kOptionNoStdin = 1u << 0;
inline constexpr std::uint32_t kOptionNoNetwork = 1u << 1;
inline constexpr std::uint32_t kOptionAuditHash = 1u << 2;
inline constexpr std::uint32_t kOptionHasSha256 = 1u << 3;
inline constexpr std::uint32_t kOptionHasWritable = 1u << 4;
inline constexpr std::uint32_t kOptionAll = (1u << 5) - 1;

inline constexpr std::size_t kSlotBytes = 8;
inline constexpr std::size_t kSlotTag = 0;     // upper half of the hash
inline constexpr std::size_t kSlotNumber = 4;  // 0: empty; then pairs from 1 on, and rules after them

inline constexpr std::uint32_t kMaxShapes = 256;  // of one pair: what a decision may have to try
inline constexpr std::uint32_t kMaxProbes = 256;  // slots one lookup may visit
inline constexpr std::uint32_t kMaxArgc = 1024;
inline constexpr std::uint32_t kMaxTokenBytes = 131071;  // what Linux lets execve take, without the NUL

// ---- the hash of the slot index

inline constexpr std::uint64_t kHashPair = 0x243f6a8885a308d3;    // seed of pairs: digits of pi
inline constexpr std::uint64_t kHashFirst = 0x9e3779b97f4a7c15;   // 2^64 / golden ratio, odd
inline constexpr std::uint64_t kHashLength = 0xc2b2ae3d27d4eb4f;  // an odd constant of xxHash

// ---- the two templates, and what no token may hold

inline constexpr std::size_t kIntMaxDigits = 6;
inline constexpr std::size_t kUrlPathMaxBytes = 256;  // after the first slash
inline constexpr char kForbiddenBytes[] = {';', '|', '&', '>', '<', '`', '$', '\n', '\0'};

}  // namespace x0x::blob
