#include "enforcer/session.hpp"

namespace x0x {

using wire::WarningKind;

void Session::accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now) {
  const auto after = [now](std::uint64_t secs) { return secs < kNever / 2000 ? now + secs * 1000 : kNever; };
  *this = {
      .stage = Stage::accepted,
      .streams = {{caps.max_stdout_bytes, caps.warn_stdout_bytes}, {caps.max_stderr_bytes, caps.warn_stderr_bytes}},
      .begun = now};
  renew(now);
  kill_at = timeout_ms != 0 ? now + timeout_ms : after(caps.max_duration_secs);
  term_at = kill_at - now > kGraceMs ? kill_at - kGraceMs : kill_at;
  warn_at = std::min(term_at, caps.warn_duration_secs != 0 ? after(caps.warn_duration_secs) : kNever);
}

void Session::warn(WarningKind kind) {
  const std::uint32_t bit = 1u << static_cast<std::uint32_t>(kind);
  due |= bit & ~warned;
  warned |= bit;
}

std::uint64_t Session::output(std::uint32_t stream, std::uint64_t bytes) {
  Stream& s = streams[stream];
  const std::uint64_t send = std::min(bytes, s.cap - s.sent);
  s.total += bytes;
  s.sent += send;
  if (s.warn != 0 && s.total >= s.warn)
    warn(stream == 0 ? WarningKind::stdout_approaching_cap : WarningKind::stderr_approaching_cap);
  if (send < bytes) warn(stream == 0 ? WarningKind::stdout_cap_hit : WarningKind::stderr_cap_hit);
  return send;
}

void Session::end(WarningKind why, std::uint64_t now) {
  if (stage != Stage::accepted && stage != Stage::running) return;
  warn(why);
  ended = ended || signalled == SessionSignal::none;
  term_at = std::min(term_at, now);
  kill_at = std::min(kill_at, now + kGraceMs);
}

Actions Session::step(std::uint64_t now, bool throttled) {
  Actions actions{.from = signalled, .to = signalled};
  if (stage == Stage::running) {
    if (now >= lease_end && !ended) end(WarningKind::lease_expired, now);
    if (now >= warn_at && !ended) warn(WarningKind::duration_approaching_cap);
    const bool killed = signalled >= SessionSignal::kill;  // an earlier step's kill, which was not obeyed in time
    if (now >= term_at) signalled = std::max(signalled, SessionSignal::terminate);
    if (now >= kill_at) signalled = std::max(signalled, SessionSignal::kill);
    if (killed && now >= kill_at + kAbandonMs) signalled = SessionSignal::abandon;
    actions.to = signalled;
    actions.overdue = actions.from == SessionSignal::none && actions.to != SessionSignal::none && !ended;
  } else if (stage == Stage::gone) {
    const bool drained = !streams[0].open && !streams[1].open;
    actions.finish = drained || now >= (throttled ? std::max(drain_end, std::min(kill_at, lease_end)) : drain_end);
  }
  actions.warnings = due;
  due = 0;
  return actions;
}

std::uint64_t Session::next_deadline(std::uint64_t now) const {
  std::uint64_t next = kNever;
  for (const std::uint64_t at : {lease_end, warn_at, term_at, kill_at, kill_at + kAbandonMs, drain_end})
    if (at > now) next = std::min(next, at);
  return next;
}

ExitFacts Session::facts(int status, std::uint64_t now) const {
  const bool exited = status >= 0 && WIFEXITED(status);
  const int signal = status >= 0 ? WTERMSIG(status) : SIGKILL;  // unknown only when its supervisor was killed
  const bool truncated = streams[0].total != streams[0].sent || streams[1].total != streams[1].sent;
  return {exited ? WEXITSTATUS(status) : -1,
          exited ? -1 : signal,
          now - begun,
          streams[0].total,
          streams[1].total,
          truncated};
}

}  // namespace x0x
