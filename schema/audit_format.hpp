// Records of the audit log and documents of the socket, as they look: ' stands for a double quote, % for a value. They
// are read by programs: a name never changes its meaning. schema/audit.schema.json describes the records.
#pragma once

#include <cstdint>

namespace x0x {

// What a `denial` for spawn_failed gives as its `step`, in the order in which the steps happen.
enum class SpawnStep : std::uint8_t {
  none,
  environment,
  pipes,
  fork,
  session,
  cwd,
  open_exe,
  digest,
  no_new_privs,
  landlock,
  network,
  rlimits,
  exec,
};
inline constexpr const char* kSpawnStepNames[] = {
    "none",   "environment",  "pipes",    "fork",    "session", "cwd",  "open_exe",
    "digest", "no_new_privs", "landlock", "network", "rlimits", "exec",
};

// Every record starts with this and ends with `}`.
inline constexpr char kRecordHead[] = "{'seq':%,'prev':%,'ts':%,'event':%";
inline constexpr char kTornBytes[] = ",'torn_bytes':%";
inline constexpr char kPolicyLoaded[] = ",'enabled':%,'loaded_from':%,'policy':%,'name':%,'version':%";
inline constexpr char kPolicyExpired[] = ",'policy':%";
inline constexpr char kAuditRecovered[] = ",'unrecorded':%";
inline constexpr char kMalformed[] = ",'request_id':%";
inline constexpr char kRequester[] =
    ",'request_id':%,'agent_id':%,'machine_id':%";  // then argv, then one of the next two
inline constexpr char kRequest[] =
    ",'matched_acl':%,'rule':{'entry':%,'command':%},'policy':%,'stdin_bytes':%,'timeout_ms':%";
inline constexpr char kDenial[] = ",'reason':%";
inline constexpr char kFailedStep[] = ",'step':%,'error':%";
inline constexpr char kStarted[] = ",'request_id':%,'pid':%";
inline constexpr char kWarning[] = ",'request_id':%,'kind':%,'bytes':%";
inline constexpr char kExit[] =
    ",'request_id':%,'code':%,'signal':%,'duration_ms':%,'stdout_bytes':%,'stderr_bytes':%,'truncated':%";

// The diagnostics document, in the order in which its parts are written.
inline constexpr char kActive[] = "{'enabled':%,'active_sessions':%,'active_per_agent':{";
inline constexpr char kRequestTotals[] =
    "},'totals':{'requests_received':%,'requests_allowed':%,'requests_denied':%,'denial_breakdown':{";
inline constexpr char kOtherTotals[] =
    "},'cap_breaches':{'stdout':%,'stderr':%,'duration':%},"
    "'cap_warnings':{'stdout_approaching':%,'stderr_approaching':%,'duration_approaching':%},"
    "'sessions_started':%,'sessions_completed':%,'sessions_cancelled':%,'audit_write_failures':%},'recent_warnings':[";
inline constexpr char kRecentWarning[] =
    "{'ts':%,'kind':%,'agent_id':%,'request_id':%,'argv_summary':%,'bytes_at_warn':%}";
inline constexpr char kAclSummary[] =
    "],'acl_summary':{'loaded_from':%,'loaded_at':%,'allow_entry_count':%,'command_entry_count':%},"
    "'policy':{'name':%,'version':%,'digest':%,'expires':%},'audit_degraded':%}";

// One of the sessions document's.
inline constexpr char kSessionLine[] =
    "{'request_id':%,'agent_id':%,'machine_id':%,'pid':%,'started_at':%,'duration_ms':%,"
    "'stdout_bytes':%,'stderr_bytes':%,'argv_summary':%}";

}  // namespace x0x
