// One request from its acceptance to its Exit, as a state machine without a process or a socket.
//
// Events change the session, step() says what is to be done now. Everything that is promised about caps, warnings,
// durations, leases and ends is here and nowhere else. Shown by tests/enforcer/session_test.cpp. Times are milliseconds
// of one clock that never goes back.
#pragma once

#include "enforcer/frame.hpp"

namespace x0x {

inline constexpr std::uint64_t kGraceMs = 5000;    // from SIGTERM to SIGKILL
inline constexpr std::uint64_t kLeaseMs = 4000;    // without a renewal
inline constexpr std::uint64_t kDrainMs = 200;     // for pipes that are still open when every process is dead
inline constexpr std::uint64_t kAbandonMs = 2000;  // for a supervisor to obey a kill

enum class Stage : std::uint8_t { free, accepted, running, gone, finished };
// SIGTERM or SIGKILL to every process of a session; `abandon`: its supervisor does not obey and is killed itself.
enum class SessionSignal : std::uint8_t { none, terminate, kill, abandon };

struct Stream {
  std::uint64_t cap = 0, warn = 0, total = 0, sent = 0;
  std::uint32_t seq = 0;
  bool open = true;
};

struct Actions {
  std::uint32_t warnings = 0;            // a bit per kind
  SessionSignal from{}, to{};            // send the signals above `from`, up to `to`
  bool overdue = false, finish = false;  // overdue: its duration ends it now
};

struct Session {
  Stage stage = Stage::free;
  SessionSignal signalled = SessionSignal::none;  // the last signal that was due
  bool ended = false;                             // by cancel, disconnect, lease or stop, not by its duration
  Stream streams[2];                              // stdout, stderr
  std::uint64_t begun = 0, lease_end = 0, warn_at = 0, term_at = 0, kill_at = 0, drain_end = 0;
  std::uint32_t warned = 0, due = 0;  // a bit per kind

  void accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now);
  std::uint64_t output(std::uint32_t stream, std::uint64_t bytes);  // how many of them to send
  void renew(std::uint64_t now) { lease_end = now + kLeaseMs; }
  void end(wire::WarningKind why, std::uint64_t now);
  void gone(std::uint64_t now) { stage = Stage::gone, drain_end = now + kDrainMs; }
  Actions step(std::uint64_t now, bool throttled);  // throttled: the peer's slowness keeps a pipe unread
  std::uint64_t next_deadline(std::uint64_t now) const;
  ExitFacts facts(int status, std::uint64_t now) const;  // status: the command's wait status, or -1

 private:
  void warn(wire::WarningKind kind);
};

}  // namespace x0x
