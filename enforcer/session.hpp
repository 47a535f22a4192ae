// One request from its acceptance to its Exit, as a state machine without a process or a socket.
//
// Events change the session; next_signal() and over() say what is to be done by now, `due` of what to warn. Everything
// that is promised about caps, warnings, durations, leases and ends is here and nowhere else. Shown by
// tests/enforcer/session_test.cpp.
#pragma once

#include "enforcer/frame.hpp"

namespace x0x {

inline constexpr std::uint64_t kGraceMs = 5000;    // from SIGTERM to SIGKILL
inline constexpr std::uint64_t kLeaseMs = 4000;    // without a renewal
inline constexpr std::uint64_t kDrainMs = 200;     // for pipes that are still open when every process is dead
inline constexpr std::uint64_t kAbandonMs = 2000;  // for a supervisor to obey a kill

// What time it is, in milliseconds that never go back, and when to look again: at the first moment that somebody asked
// about and that has not come yet.
struct Clock {
  std::uint64_t now = 0, next = kNever;

  void wake_by(std::uint64_t at) { next = std::min(next, std::max(at, now)); }
  bool reached(std::uint64_t at) {
    if (at > now) wake_by(at);
    return at <= now;
  }
};

enum class Stage : std::uint8_t { free, accepted, running, gone, finished };
// SIGTERM or SIGKILL to every process of a session; `abandon`: its supervisor does not obey and is killed itself.
enum class SessionSignal : std::uint8_t { none, terminate, kill, abandon };

struct Stream {
  std::uint64_t cap = 0, warn = 0, total = 0, sent = 0;
  std::uint32_t seq = 0;
  bool open = true;
};

struct Session {
  Stage stage = Stage::free;
  SessionSignal signalled = SessionSignal::none;  // the last signal that was due
  bool ended = false;                             // by cancel, disconnect, lease or stop, not by its duration
  Stream streams[2];                              // stdout, stderr
  std::uint64_t begun = 0, lease_end = 0, warn_at = 0, term_at = 0, kill_at = 0, abandon_at = kNever, drain_end = 0;
  std::uint32_t due = 0, warned = 0;  // a bit per kind of warning; `warned` is the server's

  void accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now);
  std::uint64_t output(std::size_t stream, std::uint64_t bytes, bool can_send);  // how many of them to send
  void renew(std::uint64_t now) { lease_end = now + kLeaseMs; }
  void end(wire::WarningKind why, std::uint64_t now);
  void gone(std::uint64_t now);

  SessionSignal next_signal(Clock& clock);               // one at a time, until it is `none`
  bool over(Clock& clock, bool throttled) const;         // throttled: the peer's slowness keeps a pipe unread
  ExitFacts facts(int status, std::uint64_t now) const;  // status: the command's wait status, or -1

 private:
  void warn(wire::WarningKind kind) { due |= 1u << static_cast<std::uint32_t>(kind); }
};

}  // namespace x0x
