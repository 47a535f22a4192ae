#include "enforcer/spawn.hpp"

namespace x0x {

// So much a command can print while we are busy. With the usual quarter of it, each waits for the other all the time.
constexpr int kPipeBytes = 256 << 10;

static void close_all(std::span<const int> fds) {
  for (const int fd : fds)
    if (fd >= 0) close(fd);
}

// A file in memory that nobody waits for to be read; it cannot be executed as it is.
static bool open_stdin(Bytes data, int& fd) {
  fd = data.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("stdin", MFD_CLOEXEC);
  if (fd < 0 || data.empty()) return fd >= 0;
  return fchmod(fd, 0400) == 0 && pwrite(fd, data.data(), data.size(), 0) == static_cast<ssize_t>(data.size());
}

// A new cgroup, in the state that cgroups are born with; no two live supervisors have the same number. Two enforcers
// may share the one above; neither may touch the other's sessions. An old one that cannot be removed, because a command
// has made cgroups in it, is not used.
static int open_cgroup(int delegated, int number) {
  char name[32];
  snprintf(name, sizeof name, "x0x-%d-%d", getpid(), number);
  unlinkat(delegated, name, AT_REMOVEDIR);
  if (mkdirat(delegated, name, 0755) != 0) return -1;
  return openat(delegated, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// A fork, into the cgroup if there is one and it can be entered.
static pid_t fork_into(int cgroup) {
  clone_args args{};
  args.flags = CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(cgroup);
  const long pid = cgroup < 0 ? -1 : syscall(SYS_clone3, &args, sizeof args);
  return pid < 0 ? fork() : static_cast<pid_t>(pid);
}

// One that has nothing to do, or has told its end, has no child left. It is not waited for without a bound: a command
// of root that traces it would have to end first. Then reap_strays() or our own end clears it away.
static void end_supervisor(Spawned& session) {
  if (session.supervisor > 0) kill(session.supervisor, SIGKILL);
  for (int i = 0; i < 100 && session.supervisor > 0 && waitpid(session.supervisor, nullptr, WNOHANG) == 0; ++i)
    poll(nullptr, 0, 1);
  close_all({session.fds + kControl, 1});
  session.supervisor = session.fds[kControl] = -1;
}

// Gives the plan to a supervisor that has none. False: there is no such supervisor, or it cannot take it.
static bool hand_over(const ChildPlan& plan, const int (&fds)[5], const Spawned& session) {
  const Bytes argv = plan.argv_block;
  if (session.supervisor < 0 || argv.size() > kMaxHandedOver) return false;
  alignas(cmsghdr) char room[CMSG_SPACE(kControlFd * sizeof *fds)] = {};
  iovec parts[] = {{const_cast<ChildPlan*>(&plan), sizeof plan}, {const_cast<std::uint8_t*>(argv.data()), argv.size()}};
  msghdr message{nullptr, 0, parts, 2, room, sizeof room, 0};
  cmsghdr* const label = CMSG_FIRSTHDR(&message);
  *label = {CMSG_LEN(kControlFd * sizeof *fds), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(label), fds, kControlFd * sizeof *fds);
  kill(session.supervisor, SIGCONT);
  return sendmsg(session.fds[kControl], &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

// A new supervisor, which has the plan because it is a fork of us.
static SpawnStep replace_supervisor(const ChildPlan& plan, int (&theirs)[5], Spawned& session) {
  end_supervisor(session);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return SpawnStep::pipes;
  session.fds[kControl] = pair[0];
  theirs[kControlFd] = pair[1];
  if (plan.delegated >= 0) theirs[kCgroupFd] = open_cgroup(plan.delegated, pair[0]);
  session.supervisor = fork_into(theirs[kCgroupFd]);
  if (session.supervisor == 0) supervise(plan, theirs);
  return session.supervisor > 0 ? SpawnStep::none : SpawnStep::fork;
}

static SpawnStep try_to_spawn(const ChildPlan& plan, int (&theirs)[5], Spawned& session) {
  if (!open_stdin(plan.stdin_data, theirs[0])) return SpawnStep::pipes;
  for (const int stream : {0, 1}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return SpawnStep::pipes;
    fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // as large as the system lets us
    session.fds[stream] = ends[0];
    theirs[1 + stream] = ends[1];
  }
  return hand_over(plan, theirs, session) ? SpawnStep::none : replace_supervisor(plan, theirs, session);
}

Progress spawn(const ChildPlan& plan, Spawned& session) {
  int theirs[] = {-1, -1, -1, -1, -1};
  const SpawnStep failed = try_to_spawn(plan, theirs, session);
  const Progress progress{.failed = failed, .error = errno};
  close_all(theirs);
  if (failed != SpawnStep::none) close_session(session);
  return progress;
}

int read_progress(const Spawned& session, Progress& progress) {
  const ssize_t n = recv(session.fds[kControl], &progress, sizeof progress, MSG_DONTWAIT);
  // It ended before it heard our last word; its own words come first.
  return n < 0 && errno == ECONNRESET ? read_progress(session, progress) : static_cast<int>(n);
}

void signal_session(const Spawned& session, SessionSignal signal) {
  if (session.supervisor <= 0) return;  // -1 would mean every process there is
  send(session.fds[kControl], &signal, sizeof signal, MSG_NOSIGNAL | MSG_DONTWAIT);
  // The command may have stopped its supervisor: SIGCONT lets it hear us.
  kill(session.supervisor, signal == SessionSignal::abandon ? SIGKILL : SIGCONT);
}

void close_session(Spawned& session, bool another_may_follow) {
  close_all({session.fds, kControl});
  session.fds[0] = session.fds[1] = -1;
  if (!another_may_follow) end_supervisor(session);
}

int find_delegated_cgroup() {
  char line[PATH_MAX], own[PATH_MAX] = "", path[2 * PATH_MAX];
  FILE* const groups = fopen("/proc/self/cgroup", "re");
  while (groups != nullptr && fgets(line, sizeof line, groups) != nullptr) sscanf(line, "0::%4095[^\n]", own);
  if (groups != nullptr) fclose(groups);
  for (const char* mount : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    snprintf(path, sizeof path, "%s%s", mount, own);
    const int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (faccessat(group, "cgroup.procs", W_OK, 0) == 0 && faccessat(group, ".", W_OK, 0) == 0) return group;
    close(group);
  }
  return -1;
}

void remove_session_cgroups(int delegated) {
  DIR* const groups = fdopendir(openat(delegated, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (groups == nullptr) return;
  while (const dirent* group = readdir(groups))
    if (strncmp(group->d_name, "x0x-", 4) == 0) unlinkat(delegated, group->d_name, AT_REMOVEDIR);
  closedir(groups);
}

}  // namespace x0x
