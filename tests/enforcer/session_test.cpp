#include "enforcer/session.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <random>
#include <vector>

using namespace x0x;
using wire::WarningKind;

namespace {

constexpr std::uint64_t kStart = 1'000'000;

constexpr Caps kCaps{.max_stdout_bytes = 1000,
                     .max_stderr_bytes = 500,
                     .max_stdin_bytes = 10,
                     .max_duration_secs = 300,
                     .warn_stdout_bytes = 800,
                     .warn_stderr_bytes = 400,
                     .warn_duration_secs = 60};

// All that is due at one moment.
struct Actions {
  std::vector<SessionSignal> signals;
  std::uint32_t warnings = 0;  // a bit per kind
  bool over = false;
  std::uint64_t next = kNever;  // when to look again
};

bool sends(const Actions& a, SessionSignal signal) { return std::ranges::count(a.signals, signal) == 1; }
bool terminates(const Actions& a) { return sends(a, SessionSignal::terminate); }
bool kills(const Actions& a) { return sends(a, SessionSignal::kill); }
bool abandons(const Actions& a) { return sends(a, SessionSignal::abandon); }

std::uint32_t bit(WarningKind kind) { return 1u << static_cast<std::uint32_t>(kind); }

Session running(std::uint32_t timeout_ms = 0, Caps caps = kCaps) {
  Session s;
  s.accept(caps, timeout_ms, kStart);
  s.stage = Stage::running;
  return s;
}

Actions step(Session& s, std::uint64_t now, bool throttled) {
  Clock clock{now};
  Actions actions;
  for (SessionSignal signal; (signal = s.next_signal(clock)) != SessionSignal::none;) actions.signals.push_back(signal);
  actions.warnings = s.due & ~s.warned;
  s.warned |= actions.warnings;
  actions.over = s.over(clock, throttled);
  actions.next = clock.next;
  CHECK(actions.next > now);
  return actions;
}

// With a renewed lease.
Actions at(Session& s, std::uint64_t ms, bool throttled = false) {
  s.renew(kStart + ms);
  return step(s, kStart + ms, throttled);
}

}  // namespace

TEST_CASE("output up to the cap is sent, the rest counted, each warning fires once") {
  Session s = running();
  CHECK(s.output(0, 700, true) == 700);
  CHECK(at(s, 1).warnings == 0);
  CHECK(s.output(0, 200, true) == 200);
  CHECK(at(s, 2).warnings == bit(WarningKind::stdout_approaching_cap));
  CHECK(s.output(0, 100, true) == 100);  // exactly the cap: nothing was dropped
  CHECK(at(s, 3).warnings == 0);
  CHECK_FALSE(s.facts(0, kStart).truncated);
  CHECK(s.output(0, 50, true) == 0);
  CHECK(at(s, 4).warnings == bit(WarningKind::stdout_cap_hit));
  CHECK(s.output(0, 50, true) == 0);
  CHECK(at(s, 5).warnings == 0);
  const ExitFacts facts = s.facts(0, kStart + 10);
  CHECK(facts.stdout_bytes == 1100);
  CHECK(facts.truncated);
  CHECK(facts.duration_ms == 10);
}

TEST_CASE("what cannot be sent is counted as dropped, whether or not it is within the cap") {
  Session s = running();
  CHECK(s.output(0, 100, false) == 0);
  CHECK(s.facts(0, kStart).stdout_bytes == 100);
  CHECK(s.facts(0, kStart).truncated);
  CHECK(at(s, 1).warnings == 0);
  CHECK(s.output(0, 901, false) == 0);
  CHECK(at(s, 2).warnings == (bit(WarningKind::stdout_approaching_cap) | bit(WarningKind::stdout_cap_hit)));
}

TEST_CASE("stderr has its own caps and warnings") {
  Session s = running();
  CHECK(s.output(1, 600, true) == 500);
  CHECK(at(s, 1).warnings == (bit(WarningKind::stderr_approaching_cap) | bit(WarningKind::stderr_cap_hit)));
  CHECK(s.facts(0, kStart).stdout_bytes == 0);
  CHECK(s.facts(0, kStart).stderr_bytes == 600);
}

TEST_CASE("a warning threshold of 0 warns of nothing") {
  Caps caps = kCaps;
  caps.warn_stdout_bytes = 0;
  Session s = running(0, caps);
  s.output(0, 1000, true);
  CHECK(at(s, 1).warnings == 0);
}

TEST_CASE("a warning comes with the very byte that reaches its threshold") {
  Session s = running();
  s.output(0, 799, true);
  CHECK(at(s, 1).warnings == 0);
  s.output(0, 1, true);
  CHECK(at(s, 2).warnings == bit(WarningKind::stdout_approaching_cap));
}

TEST_CASE("a command's end is its code or its signal, and SIGKILL when nobody saw it") {
  const Session s = running();
  CHECK(s.facts(0, kStart).code == 0);
  CHECK(s.facts(0, kStart).signal == -1);
  CHECK(s.facts(255 << 8, kStart).code == 255);
  CHECK(s.facts(SIGTERM, kStart).code == -1);
  CHECK(s.facts(SIGTERM, kStart).signal == SIGTERM);
  CHECK(s.facts(-1, kStart).code == -1);
  CHECK(s.facts(-1, kStart).signal == SIGKILL);
}

TEST_CASE("without a threshold of its own the duration warns when SIGTERM is due") {
  Caps caps = kCaps;
  caps.warn_duration_secs = 0;
  Session s = running(0, caps);
  CHECK(at(s, 294'999).warnings == 0);
  CHECK(at(s, 295'000).warnings == bit(WarningKind::duration_approaching_cap));
}

TEST_CASE("duration: a warning, SIGTERM five seconds before the cap, SIGKILL at the cap") {
  Session s = running();
  CHECK(at(s, 59'999).warnings == 0);
  CHECK(at(s, 60'000).warnings == bit(WarningKind::duration_approaching_cap));
  Actions a = at(s, 294'999);
  CHECK_FALSE(terminates(a));
  CHECK(a.next == kStart + 295'000);
  a = at(s, 295'000);
  CHECK(terminates(a));
  CHECK_FALSE(kills(a));
  CHECK(a.warnings == 0);
  CHECK_FALSE(kills(at(s, 299'999)));
  a = at(s, 300'000);
  CHECK(kills(a));
  CHECK_FALSE(terminates(a));
  CHECK_FALSE(s.ended);
  CHECK_FALSE(abandons(at(s, 301'999)));
  CHECK(abandons(at(s, 302'000)));
  CHECK_FALSE(abandons(at(s, 303'000)));
}

TEST_CASE("duration: a cap of five seconds or less sends both signals at the cap, with the warning") {
  Session s = running(5000);
  CHECK_FALSE(terminates(at(s, 4999)));
  const Actions a = at(s, 5000);
  CHECK(terminates(a));
  CHECK(kills(a));
  CHECK(a.warnings == bit(WarningKind::duration_approaching_cap));
}

TEST_CASE("duration: the requester's timeout is the cap when it is given, and a huge cap never wraps") {
  Session s = running(10'000);
  CHECK_FALSE(terminates(at(s, 4'999)));
  CHECK(terminates(at(s, 5'000)));
  Caps caps = kCaps;
  caps.max_duration_secs = ~std::uint64_t{0};
  caps.warn_duration_secs = ~std::uint64_t{0};
  s = running(0, caps);
  const Actions a = at(s, 1'000'000'000'000);
  CHECK_FALSE(terminates(a));
  CHECK_FALSE(kills(a));
  caps.max_duration_secs = kNever / 2000;  // from here on it is for ever
  CHECK(running(0, caps).kill_at >= kNever / 2);
  caps.max_duration_secs -= 1;
  CHECK(running(0, caps).kill_at == kStart + caps.max_duration_secs * 1000);
}

TEST_CASE("after a kill the next thing to wake for is the supervisor that does not obey") {
  Session s = running(10'000);
  s.end(WarningKind::cancelled, kStart);
  CHECK(step(s, kStart, false).next == kStart + kGraceMs);
  CHECK(step(s, kStart + kGraceMs, false).next == kStart + kGraceMs + kAbandonMs);
  CHECK(step(s, kStart + kGraceMs + kAbandonMs, false).next == kNever);
}

TEST_CASE("a supervisor has its time to obey even when nobody looked for hours") {
  Session s = running(10'000);
  const Actions a = at(s, 10'000'000);
  CHECK(terminates(a));
  CHECK(kills(a));
  CHECK_FALSE(abandons(a));
  CHECK_FALSE(abandons(at(s, 10'000'000 + kAbandonMs - 1)));
  CHECK(abandons(at(s, 10'000'000 + kAbandonMs)));
}

TEST_CASE("lease: four seconds without a renewal end the session") {
  Session s = running();
  Actions a = step(s, kStart + 3999, false);
  CHECK_FALSE(terminates(a));
  s.renew(kStart + 3999);
  CHECK_FALSE(terminates(step(s, kStart + 7998, false)));
  a = step(s, kStart + 7999, false);
  CHECK(terminates(a));
  CHECK(a.warnings == bit(WarningKind::lease_expired));
  CHECK(s.ended);
  CHECK_FALSE(kills(step(s, kStart + 12'998, false)));
  CHECK(kills(step(s, kStart + 12'999, false)));
}

TEST_CASE("cancel and disconnect: SIGTERM at once, SIGKILL five seconds later, each warned of once") {
  for (const WarningKind why : {WarningKind::cancelled, WarningKind::peer_disconnected}) {
    Session s = running();
    s.end(why, kStart + 10);
    Actions a = at(s, 10);
    CHECK(terminates(a));
    CHECK_FALSE(kills(a));
    CHECK(a.warnings == bit(why));
    s.end(why, kStart + 3000);  // again: neither a second warning nor a longer grace
    a = at(s, 5009);
    CHECK(a.warnings == 0);
    CHECK_FALSE(kills(a));
    CHECK(kills(at(s, 5010)));
    CHECK(s.ended);
  }
}

TEST_CASE("a cancel that comes before the process exists is kept until it does") {
  Session s;
  s.accept(kCaps, 0, kStart);
  s.end(WarningKind::cancelled, kStart);
  CHECK_FALSE(terminates(step(s, kStart, false)));
  s.stage = Stage::running;
  CHECK(terminates(step(s, kStart, false)));
}

TEST_CASE("a cancel never lengthens what the duration cap left") {
  Session s = running(6000);
  CHECK(terminates(at(s, 1000)));
  s.end(WarningKind::cancelled, kStart + 5000);
  CHECK_FALSE(s.ended);  // its duration ended it, not the cancel
  CHECK(kills(at(s, 6000)));
}

TEST_CASE("the end waits for both pipes, but not for ever") {
  Session s = running();
  s.gone(kStart + 100);
  CHECK_FALSE(at(s, 100).over);
  s.streams[0].open = false;
  CHECK_FALSE(at(s, 101).over);
  s.streams[1].open = false;
  CHECK(at(s, 102).over);
  CHECK(s.facts(3 << 8, kStart).code == 3);
  CHECK(s.facts(3 << 8, kStart).signal == -1);

  Session held = running();
  held.gone(kStart + 100);
  CHECK_FALSE(at(held, 100 + kDrainMs - 1).over);
  CHECK(at(held, 100 + kDrainMs).over);
}

TEST_CASE("a slow peer gets its output as long as it renews its lease and the duration lasts") {
  Session s = running(20'000);
  s.gone(kStart + 100);
  CHECK_FALSE(at(s, 10'000, true).over);
  CHECK_FALSE(at(s, 19'999, true).over);
  CHECK(at(s, 20'000, true).over);
  Session lost = running(20'000);
  lost.gone(kStart + 100);
  CHECK_FALSE(step(lost, kStart + kLeaseMs - 1, true).over);
  CHECK(step(lost, kStart + kLeaseMs, true).over);
}

TEST_CASE("a signal, and an end nobody saw, are told as a signal") {
  Session s = running();
  CHECK(s.facts(SIGTERM, kStart).signal == SIGTERM);
  CHECK(s.facts(SIGTERM, kStart).code == -1);
  CHECK(s.facts(-1, kStart).signal == SIGKILL);
}

TEST_CASE("a free session does nothing and never wakes anybody") {
  Session s;
  s.end(WarningKind::cancelled, kStart);
  const Actions a = step(s, kStart, true);
  CHECK(a.warnings == 0);
  CHECK(a.signals.empty());
  CHECK_FALSE(a.over);
  CHECK(a.next == kNever);
}

TEST_CASE("random events: nothing happens twice, deadlines are in the future, more is never sent than the cap") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Session s = running(static_cast<std::uint32_t>(random() % 20'000));
    std::uint64_t now = kStart;
    std::uint32_t seen = 0;
    int terminated = 0, killed = 0;
    for (int i = 0; i < 60; ++i) {
      now += random() % 900;
      switch (random() % 6) {
        case 0:
          s.output(random() % 2, random() % 400, random() % 4 != 0);
          break;
        case 1:
          s.renew(now);
          break;
        case 2:
          if (random() % 8 == 0) s.end(WarningKind::cancelled, now);
          break;
        case 3:
          if (random() % 20 == 0 && s.stage == Stage::running) s.gone(now);
          break;
        case 4:
          s.streams[random() % 2].open = random() % 4 != 0;
          break;
        default:
          break;
      }
      const Actions a = step(s, now, random() % 2 == 0);
      REQUIRE((seen & a.warnings) == 0);
      seen |= a.warnings;
      terminated += terminates(a);
      killed += kills(a);
      REQUIRE(terminated <= 1);
      REQUIRE(killed <= terminated);
      for (const Stream& stream : s.streams) REQUIRE(stream.sent <= stream.cap);
      if (a.over) {
        REQUIRE(s.stage == Stage::gone);
        break;
      }
    }
  }
}
