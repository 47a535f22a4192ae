// Starts a command exactly as its rule says and keeps hold of everything it starts.
//
// Guarantees: the program sees its argv byte for byte, an environment built from nothing, descriptors 0-2 and nothing
// else of the enforcer; a step that fails has a name and the program does not run; no process of a session outlives its
// `gone` event or its enforcer. Shown by tests/enforcer/spawn_test.cpp and supervisor_test.cpp.
//
//   enforcer ── supervisor (a fork of it, one per session, child subreaper) ── command ── whatever it starts
//
// A supervisor that never had to kill may serve another session of the same agent and machine afterwards. Not of
// others: it has the uid of its commands, and they can change its limits, its priority or its keyring.
#pragma once

#include "enforcer/session.hpp"
#include "schema/audit_format.hpp"

namespace x0x {

inline constexpr char kChildPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
inline constexpr std::size_t kMaxChildEnv = 256, kMaxWritable = 256;  // more is refused at `environment`
inline constexpr std::size_t kMaxHandedOver = 32u << 10;              // of argv, to a supervisor that is there already

// Everything a child is made from. Its C strings are the table's or constants: they mean the same in a supervisor.
struct ChildPlan {
  const char *file = nullptr,
             *cwd = nullptr;  // absolute, or looked up in kChildPath; null: argv[0], the enforcer's cwd
  Options options = {};       // flags, digest and limits; its texts and lists are above and below
  const char *envp[kMaxChildEnv + 5] = {}, *writable[kMaxWritable + 1] = {};
  Bytes argv_block, stdin_data;  // every token followed by a NUL, passed on as it is; what it can read
  int delegated = -1;            // from find_delegated_cgroup()
  std::uint32_t slot = 0;        // which cgroup below it; no two live sessions share one
  bool has(std::uint32_t option) const { return (options.flags & option) != 0; }
};

// Fills a fresh plan from a rule. `home` is the whole variable, "HOME=/root". False: the rule has more variables or
// paths than fit (say `environment`, E2BIG).
bool plan_rule(const BlobView& table, std::uint32_t rule, const char* home, ChildPlan& plan);

// The enforcer's ends, close-on-exec and non-blocking: of the command's stdout and stderr, and of the supervisor. Close
// the pipes when you like and set them to -1. The supervisor's number stays reserved until close_session() reaps it.
inline constexpr int kControl = 2;
struct Spawned {
  pid_t supervisor = -1;
  int fds[3] = {-1, -1, -1};
};

// `none`: a supervisor, that of an earlier session or a new one, will tell its progress on kControl. Otherwise the step
// that failed in the enforcer itself (pipes or fork), errno says why, and nothing runs. Needs descriptors 0-2 open.
SpawnStep spawn(const ChildPlan& plan, Spawned& session);

// All that is known of a session.
struct Progress {
  pid_t command = 0;                   // its process has this number and has passed execve
  SpawnStep failed = SpawnStep::none;  // else: the program did not run, and `error` is the errno
  int error = 0;
  int status = -1;                   // wait status of the command, once it has ended
  bool gone = false, spent = false;  // every process of the session is dead, nothing follows; so is the supervisor soon
};

// 1 when there was news, 0 at the end, -1 with errno (EAGAIN: no news yet). An end without `gone` means that the
// supervisor was killed: reap_strays(), which reaps it too, until it returns 0.
int read_progress(const Spawned& session, Progress& progress);

// SIGTERM or SIGKILL to every process of the session, however it tried to hide. `kill` goes on until none is left.
// `abandon` is for a supervisor that does not answer `kill` with `gone` within a moment (a command may stop it again
// and again): it is killed itself, and the end comes without `gone`.
void signal_session(const Spawned& session, SessionSignal signal);

// After `gone` or the end: closes what is open. Unless another session may follow, the supervisor ends and is reaped.
void close_session(Spawned& session, bool another_may_follow = false);

// Kills every descendant of this process but `supervisors` and all below them. Returns how many children it waits for
// still, and never 0 when they could not be listed. The enforcer must be a child subreaper (PR_SET_CHILD_SUBREAPER).
int reap_strays(std::span<const pid_t> supervisors);

// The enforcer's own cgroup v2 directory if it may make cgroups there, else -1. Every supervisor has a cgroup of its
// own, which it removes after a kill. The enforcer removes all that are empty: at its start (a dead one may have left
// some), after reap_strays(), and at its end. Another enforcer does without for a moment if one was about to be used.
int find_delegated_cgroup();
void remove_session_cgroups(int delegated);

// Before anything is spawned: forgets every disposition that this process inherited, so that no command inherits it.
void reset_signals();

// What this kernel offers, for --doctor. Without `child_lists` (CONFIG_PROC_CHILDREN) trees cannot be found: do not
// start. `writable` needs at least kMinLandlockAbi, `network = false` needs `seccomp`.
inline constexpr int kMinLandlockAbi = 3;  // the first that covers truncation
struct KernelFeatures {
  int landlock_abi;
  bool seccomp, child_lists;
};
KernelFeatures probe_features();

// ---- the parts, for each other and for tests

// supervisor.cpp. It moves `fds` to 0-4: 0-2 become the command's; the cgroup it was started in may be missing (-1).
inline constexpr int kControlFd = 3, kCgroupFd = 4;
inline constinit char session_cgroup[32] = "";                // seen from itself: "../" and its name
inline constexpr int kIgnoredSignals[] = {SIGPIPE, SIGXFSZ};  // by the enforcer: errors, not ends
[[noreturn]] void supervise(const ChildPlan& plan, const int (&fds)[5]);

// tree.cpp. Children in `spare` and all below them are left alone. Returns how many direct children were reached; the
// dead that wait to be reaped count too.
int signal_descendants(int signal, std::span<const pid_t> spare = {});

// sandbox.cpp. What a rule takes away from the calling process, for good. False, with errno: not all of it could be.
bool limit_resources(const Options& o);
bool limit_writes(const char* const* paths);
bool limit_network();

// How descriptors travel with a message: room for them beside it, as the kernel wants it.
struct Luggage {
  alignas(cmsghdr) char room[CMSG_SPACE(3 * sizeof(int))] = {};
  iovec parts[2];
  msghdr message{nullptr, 0, parts, 2, room, sizeof room, 0};
};

}  // namespace x0x
