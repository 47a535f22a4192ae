#include "enforcer/spawn.hpp"

#include "enforcer/supervisor.hpp"
#include "enforcer/system.hpp"
#include "enforcer/tree.hpp"

namespace x0x {

bool plan_rule(const BlobView& table, std::uint32_t rule, const char* const* argv, const char* home, ChildPlan& plan) {
  const Options o = table.options(rule);
  if (o.env_count > kMaxChildEnv || o.writable_count > kMaxWritable) return false;
  plan = {};
  plan.file = o.exe.present() ? o.exe.c_str() : argv[0];
  plan.sha256 = o.sha256;
  plan.argv = argv;
  std::uint32_t n = 0;
  for (; n < o.env_count; ++n) plan.envp[n] = table.item(o.first_item + n).c_str();
  for (const char* given : {kChildPath, home, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}) {
    bool named = false;  // by the policy, which then decides
    for (std::uint32_t i = 0; i < o.env_count; ++i)
      named = named || strncmp(given, plan.envp[i], strcspn(given, "=") + 1) == 0;
    if (!named) plan.envp[n++] = given;
  }
  for (std::uint32_t i = 0; i < o.writable_count; ++i)
    plan.writable[i] = table.item(o.first_item + o.env_count + i).c_str();
  plan.cwd = (o.cwd.present() ? o.cwd : table.default_cwd()).c_str();
  plan.network = (o.flags & blob::kOptionNoNetwork) == 0;
  plan.limit_writes = (o.flags & blob::kOptionHasWritable) != 0;
  const std::uint64_t limits[] = {o.cpu_secs, o.memory_bytes, o.file_bytes, o.open_files, o.processes};
  memcpy(plan.limits, limits, sizeof plan.limits);
  return true;
}

namespace {

// A fork, into the cgroup if there is one and it can be entered.
pid_t fork_into(int cgroup) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) args.flags = CLONE_INTO_CGROUP, args.cgroup = static_cast<std::uint64_t>(cgroup);
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  return pid < 0 && cgroup >= 0 ? fork_into(-1) : static_cast<pid_t>(pid);
}

// Every descriptor goes to its place. None lies in another's way: the control socket and the cgroup were
// opened after six descriptors of pipes, so they are beyond 4, and what they replace has been moved or is not
// ours.
[[noreturn]] void become_supervisor(const ChildPlan& plan, const int (&theirs)[5]) {
  for (int i = 0; i < 5; ++i) dup3(theirs[i], i, i < kControl ? 0 : O_CLOEXEC);
  close_range(theirs[kCgroup] < 0 ? kCgroup : kCgroup + 1, ~0u, 0);
  supervise(plan);
}

}  // namespace

SpawnStep spawn(const ChildPlan& plan, Spawned& out) {
  out = {};
  int theirs[5] = {-1, -1, -1, -1, -1}, pair[2];
  int* const ours[4] = {&out.stdin_fd, &out.stdout_fd, &out.stderr_fd, &out.control};
  SpawnStep failed = SpawnStep::none;
  for (int i = 0; i < 4 && failed == SpawnStep::none; ++i) {
    const bool pipe = i != kControl;
    if ((pipe ? pipe2(pair, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) == 0)
      *ours[i] = pair[i == 0], theirs[i] = pair[i != 0];
    else
      failed = SpawnStep::pipes;
  }
  if (plan.delegated >= 0) theirs[kCgroup] = open_session_cgroup(plan.delegated, plan.slot);
  if (failed == SpawnStep::none && (out.supervisor = fork_into(theirs[kCgroup])) < 0) failed = SpawnStep::fork;
  if (out.supervisor == 0) become_supervisor(plan, theirs);
  const int why = errno;
  for (const int fd : theirs)
    if (fd >= 0) close(fd);
  for (const int* fd : ours) fcntl(*fd, F_SETFL, O_NONBLOCK);
  if (failed != SpawnStep::none) close_session(out);
  errno = why;
  return failed;
}

int read_events(const Spawned& session, SupervisorEvent (&events)[kMaxEvents]) {
  ssize_t n;
  do n = recv(session.control, events, sizeof events, 0);
  while (n < 0 && errno == ECONNRESET);  // it ended before it heard our last word; its own words come first
  return static_cast<int>(n < 0 ? n : n / static_cast<ssize_t>(sizeof events[0]));
}

void signal_session(const Spawned& session, SessionSignal signal) {
  if (session.supervisor <= 0) return;  // -1 would mean every process there is
  send(session.control, &signal, sizeof signal, MSG_NOSIGNAL);
  // The command may have stopped its supervisor: SIGCONT lets it hear us.
  kill(session.supervisor, signal == SessionSignal::abandon ? SIGKILL : SIGCONT);
}

void close_session(Spawned& session) {
  for (const int fd : {session.control, session.stdin_fd, session.stdout_fd, session.stderr_fd})
    if (fd >= 0) close(fd);
  if (session.supervisor > 0) waitpid(session.supervisor, nullptr, 0);
  session = {};
}

}  // namespace x0x
