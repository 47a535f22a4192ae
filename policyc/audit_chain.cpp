#include "policyc/audit_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

bool same(const Digest& a, const Digest& b) { return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0; }

std::string hex(const Digest& digest) {
  char room[65];
  return std::string(digest_hex(digest, room));
}

std::string seqs(std::uint64_t from, std::uint64_t to) {
  return from == to ? fmt::format("seq {}", from) : fmt::format("seq {} to {}", from, to);
}

constexpr char kLineChanged[] = "this line was changed after it was written: the next record names another digest";

}  // namespace

AuditBreak* AuditChain::add(AuditBreakKind kind, const AuditPlace& place, std::optional<std::uint64_t> seq,
                            std::string expected, std::string found, std::string meaning) {
  ++findings_.break_count;
  sessions_known_ = false;
  if (findings_.breaks.size() == kMaxAuditBreaks) return nullptr;
  return &findings_.breaks.emplace_back(
      AuditBreak{kind, place, seq, std::move(expected), std::move(found), std::move(meaning)});
}

void AuditChain::begin_file() {
  // What a full disk cut off at the end of a file is written whole to the next one.
  findings_.unfinished_bytes = 0;
  torn_bytes_ = torn_lines_ = 0;
  fresh_file_ = true;
  ++files_;
}

void AuditChain::line(std::string_view text, bool ended, std::uint64_t number, std::uint64_t offset) {
  const AuditPlace place{files_ - 1, number, offset};
  if (!ended) {
    findings_.unfinished_bytes += text.size();
    return;
  }
  if (text.ends_with('~')) {
    if (torn_lines_++ == 0) torn_place_ = place;
    torn_bytes_ += text.size();
    return;
  }
  const std::optional<AuditRecord> record = text.size() > kMaxAuditLineBytes ? std::nullopt : parse_audit_record(text);
  if (!record) {
    ++garbage_;
    report_foreign(text, place);
    return;
  }
  const Last now{place, record->seq, digest_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})};
  if (anchor_.head && same(*anchor_.head, now.digest)) findings_.head_seq = now.seq;
  check_torn(*record, place);
  if (!check_order(*record, now)) return;
  if (findings_.records++ == 0) {
    findings_.first_seq = record->seq;
    findings_.first_ts = record->ts;
  }
  findings_.last_ts = record->ts;
  recent_[now.seq % kRecent] = now.digest;
  last_ = now;
  last_text_ = text;
  garbage_ = 0;
  fresh_file_ = false;
  check_session(*record, place);
}

void AuditChain::report_foreign(std::string_view text, const AuditPlace& place) {
  add(AuditBreakKind::not_a_record, place, std::nullopt, "a record as x0x-enforcer writes it", quote(text),
      "this line was changed or put here: x0x-enforcer does not write such a line");
}

void AuditChain::check_torn(const AuditRecord& record, const AuditPlace& place) {
  const std::uint64_t bytes = std::exchange(torn_bytes_, 0), lines = std::exchange(torn_lines_, 0);
  if (record.torn_bytes == bytes) {
    findings_.torn_lines += lines;
  } else if (bytes == 0) {
    add(AuditBreakKind::torn_line_missing, place, record.seq,
        fmt::format("{} bytes of torn lines before this record", record.torn_bytes), "none",
        "this record tells of a line that a crash left before it, and that line is gone");
  } else {
    garbage_ += lines;
    add(AuditBreakKind::torn_line_unsaid, torn_place_, std::nullopt,
        fmt::format("`torn_bytes` {} in the next record", bytes), fmt::format("{}", record.torn_bytes),
        "a line closed with `~` was put here or changed: the next record does not tell of it");
  }
}

bool AuditChain::check_order(const AuditRecord& record, const Last& now) {
  if (!last_) {
    if (record.seq == 0 && !same(record.prev, Digest{}))
      add(AuditBreakKind::line_changed, now.place, 0, hex(Digest{}), hex(record.prev),
          "this line was changed: the first record of a log names a digest of zeros");
    return true;
  }
  if (record.seq <= last_->seq) return look_back(record, now);
  if (record.seq == last_->seq + 1)
    check_digest(record, now);
  else
    report_gap(record, now);
  return true;
}

// The digests differ: either the line before was changed, or the `prev` of this one. The next record tells.
void AuditChain::check_digest(const AuditRecord& record, const Last& now) {
  const bool fits = same(record.prev, last_->digest);
  if (doubt_) {
    settle_doubt(fits, record.prev);
    return;
  }
  if (fits) return;
  doubt_ = findings_.breaks.size();
  if (add(AuditBreakKind::line_changed, last_->place, last_->seq, hex(record.prev), hex(last_->digest),
          fmt::format("this line was changed after it was written, or the `prev` of the one after it (line {}) was",
                      now.place.line)) == nullptr)
    doubt_.reset();
}

void AuditChain::settle_doubt(bool last_line_vouched_for, const Digest& named) {
  AuditBreak& doubtful = findings_.breaks[*std::exchange(doubt_, std::nullopt)];
  doubtful.meaning = kLineChanged;
  if (last_line_vouched_for) return;
  doubtful.place = last_->place;
  doubtful.seq = last_->seq;
  doubtful.expected = hex(named);
  doubtful.found = hex(last_->digest);
  doubtful.meaning = "this line was changed after it was written, its `prev` too or the line before it as well";
}

void AuditChain::report_gap(const AuditRecord& record, const Last& now) {
  settle_gap();
  doubt_.reset();
  const std::uint64_t from = last_->seq + 1, to = record.seq - 1, missing = record.seq - from;
  if (garbage_ == missing) {  // the lines are there, and were reported for what they are
    if (missing == 1 && !findings_.breaks.back().seq) findings_.breaks.back().seq = from;
    return;
  }
  gap_ = {findings_.breaks.size(), from, to, 0, 0};
  const std::string what =
      fmt::format("{} {} missing", count_of(missing, "record", "records"), missing == 1 ? "is" : "are");
  const auto kind = fresh_file_ ? AuditBreakKind::file_missing : AuditBreakKind::lines_removed;
  const std::string how = fresh_file_ ? "a file between these two is not given, or lines at their ends were removed"
                                      : "lines were removed before this one";
  if (add(kind, now.place, record.seq, fmt::format("seq {}", from), fmt::format("seq {}", record.seq),
          fmt::format("{}: {} ({})", how, what, seqs(from, to))) == nullptr)
    gap_ = {};
}

// Lines that were missed and stand further down were moved, not removed.
void AuditChain::settle_gap() {
  const Gap gap = std::exchange(gap_, Gap{});
  if (gap.found == 0) return;
  AuditBreak& broken = findings_.breaks[gap.index];
  const std::uint64_t missing = gap.to - gap.from + 1;
  broken.meaning = fmt::format("{} {} after seq {}: lines were put in another order", seqs(gap.from, gap.to),
                               gap.from == gap.to ? "stands" : "stand", gap.after);
  if (gap.found < missing)
    broken.meaning += fmt::format(", and {} removed", count_of(missing - gap.found, "line was", "lines were"));
  broken.kind = AuditBreakKind::lines_swapped;
}

// A seq that was passed already.
bool AuditChain::look_back(const AuditRecord& record, const Last& now) {
  const bool known = last_->seq - record.seq < kRecent && same(recent_[record.seq % kRecent], now.digest);
  if (known && fresh_file_) {
    ++findings_.written_again;
    return false;
  }
  if (record.seq >= gap_.from && record.seq <= gap_.to) {
    ++gap_.found;
    gap_.after = last_->seq;
    return false;
  }
  if (record.seq == 0 && !known) {
    settle_gap();
    doubt_.reset();
    add(AuditBreakKind::new_chain, now.place, 0, fmt::format("seq {}", last_->seq + 1), "seq 0",
        "a new chain starts here: the log before it was moved or removed while no enforcer ran, or it is of another "
        "enforcer");
    return true;
  }
  add(AuditBreakKind::line_repeated, now.place, record.seq, fmt::format("seq {}", last_->seq + 1),
      fmt::format("seq {}", record.seq),
      known ? "this line is a copy of one before it" : "this line was put here, or belongs further up");
  return false;
}

// After a restart no session of before it is left, so what is kept here never outgrows one run of the enforcer.
void AuditChain::check_session(const AuditRecord& record, const AuditPlace& place) {
  if (record.event == "policy_loaded") {
    sessions_known_ = true;
    open_.clear();
    ended_.clear();
  }
  const bool ends = record.event == "exit" || record.spawn_failed;
  if (!sessions_known_ || record.request_id.empty()) return;
  std::string id(record.request_id);
  if (record.event == "request") ++open_[id];
  if (!ends && record.event != "started" && record.event != "warning") return;
  const auto open = open_.find(id);
  if (open == open_.end()) {
    const bool twice = std::ranges::find(ended_, id) != ended_.end();
    add(twice ? AuditBreakKind::ended_twice : AuditBreakKind::no_request, place, record.seq,
        fmt::format("an open `request` with id {}", id), fmt::format("`{}`", record.event),
        twice ? "this request has ended already: records were put together by hand"
              : "nothing can start, warn or end without a request: records were put together by hand");
  } else if (ends) {
    if (--open->second == 0) open_.erase(open);
    ended_.push_back(std::move(id));
    if (ended_.size() > kRecentlyEnded) ended_.pop_front();
  }
}

AuditFindings AuditChain::finish() {
  doubt_.reset();
  settle_gap();
  findings_.unfinished_bytes += torn_bytes_;
  const AuditPlace end = last_ ? last_->place : AuditPlace{};
  if (last_) {
    if (!nlohmann::json::accept(last_text_))
      report_foreign(last_text_, last_->place);  // no record vouches for this one
    findings_.last_seq = last_->seq;
    findings_.head = last_->digest;
  } else {
    add(AuditBreakKind::no_records, end, std::nullopt, "at least one record", "none",
        "an enforcer writes `policy_loaded` before anything else: what it wrote was removed");
  }
  const std::optional<std::uint64_t> last_seq = last_ ? std::optional(last_->seq) : std::nullopt;
  const std::string found = last_ ? fmt::format("seq {}", last_->seq) : "no record";
  if (anchor_.min_seq && (!last_ || last_->seq < *anchor_.min_seq))
    add(AuditBreakKind::tail_truncated, end, last_seq, fmt::format("seq {} or later at the end", *anchor_.min_seq),
        found, "the end of the log was cut off, or its newest file is not given");
  if (anchor_.head && !findings_.head_seq)
    add(AuditBreakKind::head_missing, end, last_seq, hex(*anchor_.head), fmt::format("{} at the end", found),
        "no record has this digest: the log was cut off before it or written anew, or that file is not given");
  return std::move(findings_);
}

}  // namespace x0x::policyc
