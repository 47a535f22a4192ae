// The event loop: connections, requests, processes, the audit log and what is known about all of them.
//
// One turn: take what is ready, write the records, make them durable, and only then start processes and send
// Exits. A peer can hold at most one message of 2 MiB and its unsent output; data of a process is read only
// while less than kDataBudget is unsent. Shown by tests/e2e and, for what is decided here, the files it
// calls.
#pragma once

#include "enforcer/audit.hpp"
#include "enforcer/peers.hpp"
#include "enforcer/session.hpp"
#include "enforcer/spawn.hpp"

namespace x0x {

inline constexpr std::uint32_t kMaxSessions = 512;  // whatever the policy says
inline constexpr std::size_t kMaxDocument = 512u << 10;
inline constexpr std::size_t kRecentWarnings = 64;

// A session with its process and its peer.
struct Slot {
  Session session;
  Address address;
  Spawned io;
  std::uint32_t peer = kNoPeer;
  std::uint32_t rule = 0, pid = 0;
  std::uint32_t watched[4] = {};    // control, stdin, stdout, stderr
  std::uint8_t* message = nullptr;  // owns the next two
  Bytes argv_block, stdin_data;
  SpawnStep failed = SpawnStep::none;
  int error = 0;
  bool orphaned = false;  // its supervisor was killed
  ExitFacts facts;
  std::uint64_t started_at = 0;  // Unix milliseconds
  char summary[96] = {};
};

struct RecentWarning {
  std::uint64_t at, bytes;
  wire::WarningKind kind;
  Address address;
  char summary[96];
};

struct Totals {
  std::uint64_t received, allowed, denied, reasons[12], warnings[8], duration_breaches;
  std::uint64_t started, completed, cancelled, recent_count;
  RecentWarning recent[kRecentWarnings];
};

struct ServerConfig {
  const BlobView* table = nullptr;  // null: no policy, nothing is allowed
  Digest digest{};
  const char* policy_path = nullptr;
  const char* home = nullptr;  // "HOME=…"
  Audit* audit = nullptr;
  int listener = -1;
  std::span<const std::uint32_t> allowed_uids;
  std::uint64_t loaded_at = 0;  // Unix milliseconds
};

int serve(const ServerConfig& config);
void notify_systemd(std::string_view state);

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& totals,
                       std::span<const Slot> slots);
void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now);

}  // namespace x0x
