// The event loop: connections, requests, processes, the audit log and what is known about all of them.
//
// One turn: take what is ready, write the records, make them durable, and only then start processes and send Exits.
// Shown end to end by tests/e2e.
#pragma once

#include "enforcer/audit.hpp"
#include "enforcer/peers.hpp"
#include "enforcer/spawn.hpp"

namespace x0x {

inline constexpr std::uint32_t kMaxSessions = 512;  // whatever the policy says
inline constexpr std::size_t kMaxDocument = 512u << 10;
inline constexpr std::uint64_t kRecentWarnings = 64;
inline constexpr std::uint64_t kIdleMs = 10'000;  // how long supervisors without a session are kept

// A session with its process and its peer. A supervisor may outlive its session, for the next of the same pair.
struct Slot {
  Session session = {};
  Message request = {};             // points into `message`
  std::uint8_t* message = nullptr;  // its own
  Peer* peer = nullptr;
  std::uint32_t rule = blob::kNone;
  char summary[96] = {};         // the start of its command line
  std::uint64_t started_at = 0;  // Unix milliseconds
  Spawned io = {};
  Progress progress = {};
  ExitFacts facts = {};
  std::uint64_t idle_until = 0;  // without a session: when its supervisor is dismissed

  bool live() const { return session.stage != Stage::free; }
  bool idle() const { return !live() && io.supervisor > 0; }
};

// How many sessions of this agent are live.
inline std::uint32_t active_of(std::span<const Slot> slots, const Address& agent) {
  std::uint32_t active = 0;
  for (const Slot& s : slots) active += s.live() && memcmp(s.request.address.pair, agent.pair, wire::kIdBytes) == 0;
  return active;
}

struct RecentWarning {
  std::uint64_t at, bytes;
  std::uint32_t kind;
  Address address;
  char summary[sizeof Slot::summary];
};

struct Totals {
  std::uint64_t allowed, denied, reasons[12], warnings[8], overdue, started, completed, cancelled, recent_count;
  RecentWarning recent[kRecentWarnings];
};

struct ServerConfig {
  BlobView table = {};  // without a policy an empty one, which allows nothing
  Bytes digest = {};    // of the policy, if there is one
  const char* policy_path = nullptr;
  Audit* audit = nullptr;
  int listener = -1;
  std::span<const std::uint32_t> allowed_uids = {};
  std::uint64_t loaded_at = 0;  // Unix milliseconds
};

int serve(const ServerConfig& config);

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& totals,
                       std::span<const Slot> slots);
void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now);

}  // namespace x0x
