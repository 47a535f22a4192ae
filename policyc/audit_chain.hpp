// Follows the hash chain of an audit log, line by line, and says where and how it breaks.
//
// Pure and of constant size: it sees each line once, in the order of the files. One change of a log gives one break,
// named after what was done to it. tests/policyc/audit_chain_test.cpp makes every kind.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policyc/audit_record.hpp"

namespace x0x::policyc {

// In reports by these names, which do not change.
#define X0X_AUDIT_BREAKS(B) \
  B(line_changed)           \
  B(lines_removed)          \
  B(lines_swapped)          \
  B(line_repeated)          \
  B(file_missing)           \
  B(new_chain)              \
  B(not_a_record)           \
  B(torn_line_unsaid)       \
  B(torn_line_missing)      \
  B(no_request)             \
  B(ended_twice)            \
  B(tail_truncated)         \
  B(head_missing)           \
  B(no_records)

enum class AuditBreakKind : std::uint8_t {
#define X0X_AUDIT_BREAK(name) name,
  X0X_AUDIT_BREAKS(X0X_AUDIT_BREAK)
#undef X0X_AUDIT_BREAK
};

inline constexpr const char* kAuditBreakNames[] = {
#define X0X_AUDIT_BREAK(name) #name,
    X0X_AUDIT_BREAKS(X0X_AUDIT_BREAK)
#undef X0X_AUDIT_BREAK
};

struct AuditPlace {
  std::size_t file = 0;                // in the order of begin_file()
  std::uint64_t line = 0, offset = 0;  // from 1; bytes from 0
};

struct AuditBreak {
  AuditBreakKind kind;
  AuditPlace place;
  std::optional<std::uint64_t> seq;
  std::string expected, found, meaning;
};

// What is known of the log from elsewhere.
struct AuditAnchor {
  std::optional<Digest> head;  // of a record that must be there
  std::optional<std::uint64_t> min_seq;
};

struct AuditFindings {
  std::uint64_t records = 0;
  std::uint64_t torn_lines = 0;        // left by crashes, and said so
  std::uint64_t unfinished_bytes = 0;  // at the end: a write under way, or a crash that no restart has dealt with yet
  std::uint64_t written_again = 0;     // at the start of a file: what the one before may not have on disk
  std::uint64_t first_seq = 0, last_seq = 0;
  std::string first_ts, last_ts;
  Digest head{};                          // of the last record
  std::optional<std::uint64_t> head_seq;  // where the anchor's head was found
  std::uint64_t break_count = 0;
  std::vector<AuditBreak> breaks;  // the first kMaxAuditBreaks of them
};

inline constexpr std::size_t kMaxAuditBreaks = 100;

class AuditChain {
 public:
  explicit AuditChain(const AuditAnchor& anchor) : anchor_(anchor), recent_(kRecent) {}

  void begin_file();
  // A line without its newline; `ended`: it had one.
  void line(std::string_view text, bool ended, std::uint64_t number, std::uint64_t offset);
  AuditFindings finish();

 private:
  // As many records as can wait for a disk, which are written again after a rotation.
  static constexpr std::size_t kRecent = 1u << 15;
  static constexpr std::size_t kRecentlyEnded = 1024;

  struct Last {
    AuditPlace place;
    std::uint64_t seq = 0;
    Digest digest{};
  };
  struct Gap {
    std::size_t index = 0;               // of its break
    std::uint64_t from = 1, to = 0;      // the seqs that were not there
    std::uint64_t found = 0, after = 0;  // how many turned up later, and after which seq
  };

  AuditBreak* add(AuditBreakKind kind, const AuditPlace& place, std::optional<std::uint64_t> seq, std::string expected,
                  std::string found, std::string meaning);
  void report_foreign(std::string_view text, const AuditPlace& place);
  void check_torn(const AuditRecord& record, const AuditPlace& place);
  bool check_order(const AuditRecord& record, const Last& now);  // false: it does not carry the chain on
  void check_digest(const AuditRecord& record, const Last& now);
  void report_gap(const AuditRecord& record, const Last& now);
  bool look_back(const AuditRecord& record, const Last& now);
  void check_session(const AuditRecord& record, const AuditPlace& place);
  void settle_doubt(bool last_line_vouched_for, const Digest& named);
  void settle_gap();

  const AuditAnchor anchor_;
  AuditFindings findings_;
  std::optional<Last> last_;
  std::string last_text_;
  std::vector<Digest> recent_;  // by seq
  std::size_t files_ = 0;
  bool fresh_file_ = true;            // nothing new yet in this file
  std::uint64_t garbage_ = 0;         // lines since the last record that are none
  std::optional<std::size_t> doubt_;  // a break: was it the line before, or this line's own `prev`?
  Gap gap_;

  AuditPlace torn_place_;
  std::uint64_t torn_bytes_ = 0, torn_lines_ = 0;

  bool sessions_known_ = false;  // a record since which every request was seen
  std::unordered_map<std::string, std::uint32_t> open_;
  std::deque<std::string> ended_;
};

}  // namespace x0x::policyc
