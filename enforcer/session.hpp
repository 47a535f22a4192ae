// One request from its acceptance to its Exit, as a state machine without a process or a socket.
//
// Events change the session, step() says what is to be done now. Everything enforcement.md says about caps,
// warnings, durations, leases and ends is here and nowhere else. Shown by tests/enforcer/session_test.cpp.
// Times are milliseconds of one clock that never goes back.
#pragma once

#include "enforcer/frame.hpp"

namespace x0x {

inline constexpr std::uint64_t kGraceMs = 5000;    // from SIGTERM to SIGKILL
inline constexpr std::uint64_t kLeaseMs = 4000;    // without a renewal
inline constexpr std::uint64_t kDrainMs = 200;     // for pipes that are still open when every process is dead
inline constexpr std::uint64_t kAbandonMs = 2000;  // for a supervisor to obey a kill

enum class Stage : std::uint8_t { free, accepted, running, gone, finished };

struct Stream {
  std::uint64_t cap = 0, warn = 0;
  std::uint64_t total = 0, sent = 0;
  std::uint32_t seq = 0;
  bool open = true;
};

struct Actions {
  std::uint32_t warnings = 0;  // a bit per kind
  bool terminate = false, kill = false, abandon = false, finish = false;
};

struct Session {
  Stage stage = Stage::free;
  Stream streams[2];  // stdout, stderr
  std::uint64_t begun = 0, lease_end = 0, warn_at = 0, term_at = 0, kill_at = 0, drain_end = 0;
  int status = -1;                    // wait status of the command, or -1
  std::uint32_t warned = 0, due = 0;  // a bit per kind
  bool terminated = false, killed = false, abandoned = false;
  bool ended = false;  // by cancel, disconnect, lease or stop, not by its duration

  void accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now);
  std::uint64_t output(std::size_t stream, std::uint64_t bytes);  // how many of them to send
  void renew(std::uint64_t now) { lease_end = now + kLeaseMs; }
  void end(wire::WarningKind why, std::uint64_t now);
  void gone(std::uint64_t now);
  Actions step(std::uint64_t now, bool throttled);  // throttled: the peer's slowness keeps a pipe unread
  std::uint64_t next_deadline(std::uint64_t now) const;
  ExitFacts facts(std::uint64_t now) const;

 private:
  void warn(wire::WarningKind kind);
};

}  // namespace x0x
