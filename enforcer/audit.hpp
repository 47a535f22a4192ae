// The audit log: one JSON object per line, each naming the digest of the line before.
//
// A record is on disk before what it allows happens: begin(), append(), flush(), then act. What could not be written is
// kept in order and tried again; until then the log is degraded and nothing new may be allowed. A torn last line is
// closed off and said so, never deleted. Shown by tests/enforcer/audit_test.cpp.
#pragma once

#include "enforcer/json.hpp"
#include "enforcer/verify.hpp"

namespace x0x {

inline constexpr std::size_t kAuditQueueBytes = 8u << 20;  // records that wait for the disk
inline constexpr std::size_t kAuditTailBytes = 2u << 20;   // more than two records of the largest kind

std::uint64_t milliseconds(clockid_t clock);

// Whether the log could be opened, for `--check`; nothing is created.
Fault check_audit(const char* path);

// Where a chain goes on: the last whole record of these lines, and how many bytes after it a crash tore.
std::string_view last_record(std::string_view lines, std::uint64_t& torn);

class Audit {
 public:
  // Opens the log and finds the end of its chain. Path and queue must outlive this object.
  Fault open(const char* path, std::span<char> queue);
  // After SIGHUP: goes on in the file that has the path now, or on a fault in the one it has.
  Fault reopen();

  // A record is begun, written to and appended before the next one is begun.
  Json begin(std::string_view event) const;
  void append(Json record, bool wait = true);  // wait: something must not happen before this record is durable
  bool flush();                                // true: every record so far is durable

  bool waiting() const { return waiting_; }
  bool pending() const { return used_ > 0; }
  bool degraded() const { return degraded_; }
  // Room for a request and what may follow it. While degraded nothing is added for requests.
  bool has_room() const { return used_ < queue_.size() / 4 || degraded_; }
  std::uint64_t failures() const { return failures_; }
  void count_unrecorded() { ++unrecorded_; }  // something denied while degraded

 private:
  Fault attach(int fd);
  bool write_queue();

  const char* path_ = nullptr;
  int fd_ = -1;
  std::span<char> queue_;
  std::size_t used_ = 0, written_ = 0;  // the queue starts at the first byte that is not durable
  std::uint64_t seq_ = 0, torn_ = 0, failures_ = 0, unrecorded_ = 0;
  Digest prev_{};
  bool waiting_ = false, degraded_ = false, stuck_ = false;
};

// `,"argv":[…]`, or only its digest. Whole tokens up to a bound; a longer argv says so and adds its digest.
void write_argv(Json& json, Bytes block, bool digest_only);

}  // namespace x0x
