#include "enforcer/session.hpp"

#include "enforcer/system.hpp"

namespace x0x {

using wire::WarningKind;

namespace {
std::uint64_t after(std::uint64_t start, std::uint64_t seconds) {
  return seconds < kNever / 2000 ? start + seconds * 1000 : kNever;
}
}  // namespace

void Session::accept(const Caps& caps, std::uint32_t timeout_ms, std::uint64_t now) {
  *this = {};
  stage = Stage::accepted;
  streams[0].cap = caps.stdout_bytes;
  streams[0].warn = caps.warn_stdout_bytes;
  streams[1].cap = caps.stderr_bytes;
  streams[1].warn = caps.warn_stderr_bytes;
  begun = now;
  renew(now);
  kill_at = timeout_ms != 0 ? now + timeout_ms : after(now, caps.duration_secs);
  term_at = kill_at - now > kGraceMs ? kill_at - kGraceMs : kill_at;
  warn_at = std::min(term_at, caps.warn_duration_secs != 0 ? after(now, caps.warn_duration_secs) : kNever);
}

void Session::warn(WarningKind kind) {
  const std::uint32_t bit = 1u << static_cast<std::uint32_t>(kind);
  due |= bit & ~warned;
  warned |= bit;
}

std::uint64_t Session::output(std::size_t stream, std::uint64_t bytes) {
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
  ended = ended || !terminated;
  term_at = std::min(term_at, now);
  kill_at = std::min(kill_at, now + kGraceMs);
}

void Session::gone(std::uint64_t now) {
  stage = Stage::gone;
  drain_end = now + kDrainMs;
}

Actions Session::step(std::uint64_t now, bool throttled) {
  Actions actions;
  if (stage == Stage::running) {
    if (now >= lease_end && !ended) end(WarningKind::lease_expired, now);
    if (now >= warn_at && !ended) warn(WarningKind::duration_approaching_cap);
    actions.terminate = now >= term_at && !terminated;
    actions.kill = now >= kill_at && !killed;
    actions.abandon = killed && now >= kill_at + kAbandonMs && !abandoned;
    terminated = terminated || actions.terminate;
    killed = killed || actions.kill;
    abandoned = abandoned || actions.abandon;
  } else if (stage == Stage::gone) {
    const bool drained = !streams[0].open && !streams[1].open;
    const std::uint64_t patience = throttled ? std::max(drain_end, std::min(kill_at, lease_end)) : drain_end;
    actions.finish = drained || now >= patience;
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

ExitFacts Session::facts(std::uint64_t now) const {
  ExitFacts facts;
  if (status >= 0 && WIFEXITED(status))
    facts.code = WEXITSTATUS(status);
  else
    facts.signal = status >= 0 ? WTERMSIG(status) : SIGKILL;  // unknown only when its supervisor was killed
  facts.duration_ms = now - begun;
  facts.stdout_bytes = streams[0].total;
  facts.stderr_bytes = streams[1].total;
  facts.truncated = streams[0].total != streams[0].sent || streams[1].total != streams[1].sent;
  return facts;
}

}  // namespace x0x
