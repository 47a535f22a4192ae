#include "enforcer/session.hpp"

namespace x0x {

using wire::WarningKind;

void Session::accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now) {
  const auto after = [now](std::uint64_t secs) { return now + std::min(secs, kNever / 2000) * 1000; };
  *this = {
      .stage = Stage::accepted,
      .streams = {{caps.max_stdout_bytes, caps.warn_stdout_bytes}, {caps.max_stderr_bytes, caps.warn_stderr_bytes}},
      .begun = now};
  renew(now);
  kill_at = timeout_ms != 0 ? now + timeout_ms : after(caps.max_duration_secs);
  term_at = kill_at - now > kGraceMs ? kill_at - kGraceMs : kill_at;
  warn_at = caps.warn_duration_secs != 0 ? std::min(term_at, after(caps.warn_duration_secs)) : term_at;
}

std::uint64_t Session::output(std::size_t stream, std::uint64_t bytes, bool can_send) {
  Stream& s = streams[stream];
  const std::uint64_t send = can_send ? std::min(bytes, s.cap - s.sent) : 0;
  s.total += bytes;
  s.sent += send;
  if (s.warn != 0 && s.total >= s.warn)
    warn(stream == 0 ? WarningKind::stdout_approaching_cap : WarningKind::stderr_approaching_cap);
  if (s.total > s.cap) warn(stream == 0 ? WarningKind::stdout_cap_hit : WarningKind::stderr_cap_hit);
  return send;
}

void Session::end(WarningKind why, std::uint64_t now) {
  if (stage != Stage::accepted && stage != Stage::running) return;
  warn(why);
  ended = ended || signalled == SessionSignal::none;
  term_at = std::min(term_at, now);
  kill_at = std::min(kill_at, now + kGraceMs);
}

void Session::gone(std::uint64_t now) {
  stage = Stage::gone;
  drain_end = now + kDrainMs;
}

SessionSignal Session::next_signal(Clock& clock) {
  if (stage != Stage::running) return SessionSignal::none;
  if (!ended && clock.reached(lease_end)) end(WarningKind::lease_expired, clock.now);
  if (!ended && clock.reached(warn_at)) warn(WarningKind::duration_approaching_cap);
  const std::uint64_t next_at[] = {term_at, kill_at, abandon_at, kNever};
  const auto last = static_cast<std::uint8_t>(signalled);
  if (!clock.reached(next_at[last])) return SessionSignal::none;
  signalled = static_cast<SessionSignal>(last + 1);
  if (signalled == SessionSignal::kill) abandon_at = clock.now + kAbandonMs;
  return signalled;
}

bool Session::over(Clock& clock, bool throttled) const {
  const bool drained = !streams[0].open && !streams[1].open;
  const std::uint64_t last = throttled ? std::max(drain_end, std::min(kill_at, lease_end)) : drain_end;
  return stage == Stage::gone && (drained || clock.reached(last));
}

ExitFacts Session::facts(int status, std::uint64_t now) const {
  if (status < 0) status = SIGKILL;  // unknown only when its supervisor was killed
  const auto& [out, err] = streams;
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : -1,
          .duration_ms = now - begun,
          .stdout_bytes = out.total,
          .stderr_bytes = err.total,
          .truncated = out.total > out.sent || err.total > err.sent};
}

}  // namespace x0x
