// Every number of the frames and of the socket messages (docs/wire.md). They are x0x's own and never change.
#pragma once

#include <cstddef>
#include <cstdint>

namespace x0x::wire {

enum class DenialReason : std::uint32_t {
  exec_disabled = 0,
  unverified_sender = 1,
  trust_rejected = 2,
  agent_machine_not_in_acl = 3,
  argv_not_allowed = 4,
  stdin_too_large = 5,
  timeout_too_large = 6,
  cwd_not_allowed = 7,
  concurrency_limit_reached = 8,
  shell_metachar_in_argv = 9,
  spawn_failed = 10,
  malformed_frame = 11,
};
inline constexpr const char* kDenialNames[] = {
    "exec_disabled",   "unverified_sender", "trust_rejected",  "agent_machine_not_in_acl",  "argv_not_allowed",
    "stdin_too_large", "timeout_too_large", "cwd_not_allowed", "concurrency_limit_reached", "shell_metachar_in_argv",
    "spawn_failed",    "malformed_frame",
};

enum class WarningKind : std::uint32_t {
  stdout_cap_hit = 0,
  stderr_cap_hit = 1,
  duration_approaching_cap = 2,
  stdout_approaching_cap = 3,
  stderr_approaching_cap = 4,
  lease_expired = 5,
  peer_disconnected = 6,
  cancelled = 7,
};
inline constexpr const char* kWarningNames[] = {
    "StdoutCapHit",         "StderrCapHit", "DurationApproachingCap", "StdoutApproachingCap",
    "StderrApproachingCap", "LeaseExpired", "PeerDisconnected",       "Cancelled",
};
// What a Warning says to a person.
inline constexpr const char* kWarningMessages[] = {
    "stdout cap reached; further output is counted and dropped",
    "stderr cap reached; further output is counted and dropped",
    "the session is near its duration cap",
    "stdout is near its cap",
    "stderr is near its cap",
    "the lease was not renewed; the session is being ended",
    "the peer has gone; the session is being ended",
    "the session was cancelled and is being ended",
};

enum class Tag : std::uint32_t {
  request = 0,
  lease_renew = 1,
  started = 2,
  stdout_chunk = 3,
  stderr_chunk = 4,
  warning = 5,
  exit = 6,
  cancel = 7,
};

inline constexpr char kPrefix[12] = "x0x-exec-v1";  // its NUL is part of the prefix
inline constexpr std::size_t kPrefixBytes = 12;
inline constexpr std::size_t kRequestIdBytes = 16;
inline constexpr std::size_t kIdBytes = 32;  // an agent id, a machine id

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::uint32_t kMaxMessageBytes = 2u << 20;
inline constexpr std::size_t kChunkBytes = 16u << 10;

inline constexpr std::uint8_t kKindExec = 1;
inline constexpr std::uint8_t kKindDiagnostics = 2;
inline constexpr std::uint8_t kKindSessions = 3;

}  // namespace x0x::wire
