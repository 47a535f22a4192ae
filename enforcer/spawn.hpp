// Starts a command exactly as its rule says and keeps hold of everything it starts.
//
// Guarantees: the program sees its argv byte for byte, an environment built from nothing, descriptors 0-2 and nothing
// else of the enforcer; a step that fails has a name and the program does not run; no process of a session outlives its
// `gone` event or its enforcer. Shown by tests/enforcer/spawn_test.cpp and supervisor_test.cpp.
//
//   enforcer ── supervisor (a fork of it, one per session, child subreaper) ── command ── whatever it starts
//
// A supervisor that started its command and never had to kill may serve another session of the same agent and machine
// afterwards. Not of others: it has the uid of its commands, and they can change its limits, its priority or its
// keyring.
#pragma once

#include "enforcer/session.hpp"
#include "schema/audit_format.hpp"

namespace x0x {

inline constexpr char kChildPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
inline constexpr std::size_t kMaxHandedOver = 32u << 10;  // of argv, to a supervisor that is there already

// What to run, and how. The table is where it was in a supervisor too, because that is a fork of us.
struct ChildPlan {
  const BlobView* table = nullptr;
  std::uint32_t rule = 0;
  Bytes argv_block, stdin_data;  // every token followed by a NUL, passed on as it is; what it can read
  int delegated = -1;            // from find_delegated_cgroup()
};

// The enforcer's ends, close-on-exec and non-blocking: of the command's stdout and stderr, and of the supervisor. Close
// the pipes when you like and set them to -1. The supervisor's number stays reserved until close_session() reaps it.
inline constexpr int kControl = 2;
struct Spawned {
  pid_t supervisor = -1;
  int fds[3] = {-1, -1, -1};
};

// All that is known of a session.
struct Progress {
  pid_t command = 0;                   // its process has this number and has passed execve
  SpawnStep failed = SpawnStep::none;  // else: the program did not run, and `error` is the errno
  int error = 0;
  int status = -1;                   // wait status of the command, once it has ended
  bool gone = false, spent = false;  // every process of the session is dead, nothing follows; so is the supervisor soon
};

// A supervisor, that of an earlier session or a new one, will tell its progress on kControl. Or a step `failed` in the
// enforcer itself (pipes or fork), and nothing runs. Needs descriptors 0-2 open.
Progress spawn(const ChildPlan& plan, Spawned& session);

// Above 0 when there was news, 0 at the end, -1 with errno (EAGAIN: no news yet). An end without `gone` means that the
// supervisor was killed: reap_strays(), which reaps it too, until it returns 0.
int read_progress(const Spawned& session, Progress& progress);

// SIGTERM or SIGKILL to every process of the session, however it tried to hide. `kill` goes on until none is left.
// `abandon` is for a supervisor that does not answer `kill` with `gone` within a moment (a command may stop it again
// and again): it is killed itself, and the end comes without `gone`.
void signal_session(const Spawned& session, SessionSignal signal);

// After `gone` or the end: closes what is open. Unless another session may follow, the supervisor ends and is reaped.
void close_session(Spawned& session, bool another_may_follow = false);

// Kills every descendant of this process but `supervisors` and all below them, and reaps those that are dead. Returns
// how many of its children were left to do so with, and never 0 when they could not be listed: come again until it is
// 0. The enforcer must be a child subreaper (PR_SET_CHILD_SUBREAPER).
int reap_strays(std::span<const pid_t> supervisors);

// The enforcer's own cgroup v2 directory if it may make cgroups there, else -1. Every supervisor starts in a new cgroup
// below. The enforcer removes all that are empty: at its start (a dead one may have left some), after reap_strays(),
// and at its end. Another enforcer does without for a moment if one was about to be used.
int find_delegated_cgroup();
void remove_session_cgroups(int delegated);

// Before anything else: forgets every disposition that this process inherited, so that no command inherits it, and
// blocks every signal. Those that are meant for us are read from a descriptor; a write that fails is an error and not
// an end.
void reset_signals();

// Without the lists (CONFIG_PROC_CHILDREN) trees cannot be found: do not start.
inline bool has_child_lists() { return access("/proc/thread-self/children", R_OK) == 0; }

// ---- the parts, for each other and for tests

// supervisor.cpp. It moves `fds` to 0-4: 0-2 become the command's; the cgroup it was started in may be missing (-1).
inline constexpr int kControlFd = 3, kCgroupFd = 4;
[[noreturn]] void supervise(const ChildPlan& plan, const int (&fds)[5]);

// tree.cpp. Children in `spare` and all below them are left alone.
void signal_descendants(int signal, std::span<const pid_t> spare = {});

// sandbox.cpp. What a rule takes away from the calling process, for good. False, with errno: not all of it could be.
inline constexpr int kMinLandlockAbi = 3;  // the first that covers truncation
int landlock_abi();                        // of this kernel; below 0: it has none
bool limit_resources(const Options& o);
bool limit_writes(const BlobView& table, const Options& o);
bool limit_network();

}  // namespace x0x
