// Starts a command exactly as its rule says and keeps hold of everything it starts.
//
// Guarantees: the program sees its argv byte for byte, an environment built from nothing, descriptors 0-2 and
// nothing else of the enforcer; a step that fails has a name and the program does not run; no process of a
// session outlives its `gone` event or its enforcer. Shown by tests/enforcer/spawn_test.cpp and
// supervisor_test.cpp.
//
//   enforcer ── supervisor (a fork of it, one per session, child subreaper) ── command ── whatever it starts
#pragma once

#include <sys/types.h>

#include "enforcer/blob_view.hpp"

namespace x0x {

// In the order in which they happen. The names are what the audit log says.
// clang-format off
enum class SpawnStep : std::uint8_t {
  none, environment, pipes, fork, session, cwd, open_exe, digest, no_new_privs, landlock, network, rlimits, exec };
inline constexpr const char* kSpawnStepNames[] = {"none", "environment", "pipes", "fork", "session", "cwd",
  "open_exe", "digest", "no_new_privs", "landlock", "network", "rlimits", "exec"};
// clang-format on

inline constexpr char kChildPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
inline constexpr std::size_t kMaxChildEnv = 256, kMaxWritable = 256;  // more is refused at `environment`

// Everything a child is made from, as C strings. Nothing is copied: it must live until spawn() returns.
struct ChildPlan {
  const char* file = nullptr;            // absolute, or a bare name looked up in kChildPath
  const std::uint8_t* sha256 = nullptr;  // the content `file` must have; null: any
  const char* const* argv = nullptr;     // null-terminated, passed on as it is
  const char* envp[kMaxChildEnv + 5] = {};
  const char* cwd = nullptr;  // null: the enforcer's
  bool network = true;        // false: no socket but AF_UNIX
  bool limit_writes = false;  // true: only `writable`, what is below it, and /dev/null
  const char* writable[kMaxWritable + 1] = {};
  std::uint64_t limits[5] = {};  // cpu_secs, memory_bytes, file_bytes, open_files, processes; 0: inherited
  int delegated = -1;            // from find_delegated_cgroup()
  std::uint32_t slot = 0;        // which cgroup below it; no two live sessions share one
};

// Fills a plan from a rule. `argv` is null-terminated and starts with the program's name; `home` is the whole
// variable, "HOME=/root". False: the rule has more variables or paths than fit (say `environment`, E2BIG).
bool plan_rule(const BlobView& table, std::uint32_t rule, const char* const* argv, const char* home, ChildPlan& plan);

// The enforcer's ends, close-on-exec and non-blocking. Close the pipes when you like and set them to -1. The
// supervisor's number stays reserved until close_session() reaps it.
struct Spawned {
  pid_t supervisor = -1;
  int control = -1, stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;
};

// `none`: the supervisor runs and events will follow on `control`. Otherwise the step that failed in the
// enforcer itself (pipes or fork), errno says why, and nothing was started. Needs descriptors 0-2 to be open.
SpawnStep spawn(const ChildPlan& plan, Spawned& out);

enum class EventKind : std::uint32_t {
  started = 1,  // value: number of the command's process, which has passed execve
  failed,       // value: SpawnStep, error: errno; the program did not run
  exited,       // value: wait status of the command
  gone,         // every process of the session is dead; always the last, also after `failed`
};
struct SupervisorEvent {
  EventKind kind;
  std::int32_t value, error;
};
inline constexpr std::size_t kMaxEvents = 2;  // in one message: exited and gone often come together

// Reads one message: the number of events, 0 at the end, -1 with errno (EAGAIN: none yet). An end without
// `gone` means that the supervisor was killed: close_session(), then reap_strays() until it returns 0.
int read_events(const Spawned& session, SupervisorEvent (&events)[kMaxEvents]);

// SIGTERM or SIGKILL to every process of the session, however it tried to hide. `kill` goes on until none is
// left. `abandon` is for a supervisor that does not answer `kill` with `gone` within a moment (a command may
// stop it again and again): it is killed itself, and the end comes without `gone`.
enum class SessionSignal : char { terminate = 'T', kill = 'K', abandon = 'A' };
void signal_session(const Spawned& session, SessionSignal signal);

// After `gone` or the end: closes what is open and reaps the supervisor.
void close_session(Spawned& session);

// Kills every descendant of this process but `supervisors` and all below them. Returns how many children it
// waits for still. The enforcer must be a child subreaper (PR_SET_CHILD_SUBREAPER).
int reap_strays(std::span<const pid_t> supervisors);

// The enforcer's own cgroup v2 directory if it may make cgroups there, else -1. The cgroups of sessions are
// made afresh as they are needed, and removed at the end.
int find_delegated_cgroup();
void remove_session_cgroups(int delegated, std::uint32_t slots);

// What this kernel offers, for --doctor. Without `child_lists` (CONFIG_PROC_CHILDREN) trees cannot be found:
// do not start. `writable` needs at least kMinLandlockAbi, `network = false` needs `seccomp`.
inline constexpr int kMinLandlockAbi = 3;  // the first that covers truncation
struct KernelFeatures {
  int landlock_abi;
  bool seccomp, child_lists;
};
KernelFeatures probe_features();

}  // namespace x0x
