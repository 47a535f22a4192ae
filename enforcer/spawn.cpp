#include "enforcer/spawn.hpp"

namespace x0x {

bool plan_rule(const BlobView& table, std::uint32_t rule, const char* home, ChildPlan& plan) {
  const Options& o = plan.options = table.options(rule);
  if (o.env_count > kMaxChildEnv || o.writable_count > kMaxWritable) return false;
  plan.file = table.text(o.exe).c_str();
  plan.cwd = table.text(table.text(o.cwd).present() ? o.cwd : table.header().default_cwd).c_str();
  const std::uint32_t first_path = o.first_item + o.env_count;
  for (std::uint32_t i = 0; i < o.env_count; ++i) plan.envp[i] = table.item(o.first_item + i).c_str();
  for (std::uint32_t i = 0; i < o.writable_count; ++i) plan.writable[i] = table.item(first_path + i).c_str();
  const char **const env_end = plan.envp + o.env_count, **next = env_end;
  for (const char* given : {kChildPath, home, "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}) {
    const auto has_its_name = [&](const char* v) { return strncmp(given, v, strcspn(given, "=") + 1) == 0; };
    if (std::none_of(plan.envp, env_end, has_its_name)) *next++ = given;  // else the policy decides
  }
  return true;
}

// A new cgroup for a slot, in the state that cgroups are born with. Two enforcers may share the one above; neither may
// touch the other's sessions. An old one that cannot be removed, because a command has made cgroups in it, is not used.
static int open_cgroup(int delegated, std::uint32_t slot) {
  snprintf(session_cgroup, sizeof session_cgroup, "../x0x-%d-%u", getpid(), slot);
  const char* const name = session_cgroup + strlen("../");
  unlinkat(delegated, name, AT_REMOVEDIR);
  if (mkdirat(delegated, name, 0755) != 0) return -1;
  return openat(delegated, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// A file in memory that nobody waits for to be read; it cannot be executed as it is.
static int open_stdin(Bytes data) {
  if (data.empty()) return open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int fd = memfd_create("stdin", MFD_CLOEXEC);
  const bool ready = fchmod(fd, 0400) == 0 && pwrite(fd, data.data(), data.size(), 0) == ssize_t(data.size());
  return ready ? fd : (close(fd), -1);
}

// A fork, into the cgroup if there is one and it can be entered.
static pid_t fork_into(int cgroup) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) args.flags = CLONE_INTO_CGROUP, args.cgroup = static_cast<std::uint64_t>(cgroup);
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  return pid < 0 && cgroup >= 0 ? fork_into(-1) : static_cast<pid_t>(pid);
}

static void close_all(std::span<const int> fds) {
  for (const int fd : fds)
    if (fd >= 0) close(fd);
}

// One that has nothing to do, or has told its end, has no child left. It is not waited for without a bound: a command
// of root that traces it would have to end first. Then reap_strays() or our own end clears it away.
static void end_supervisor(Spawned& session) {
  if (session.supervisor > 0) kill(session.supervisor, SIGKILL);
  for (int i = 0; i < 100 && session.supervisor > 0 && waitpid(session.supervisor, nullptr, WNOHANG) == 0; ++i)
    poll(nullptr, 0, 1);
  if (session.fds[kControl] >= 0) close(session.fds[kControl]);
  session.supervisor = session.fds[kControl] = -1;
}

// Gives the plan to a supervisor that has none. False: there is no such supervisor, or it cannot take it.
static bool hand_over(const ChildPlan& plan, const int* fds, const Spawned& session) {
  if (session.supervisor < 0 || plan.argv_block.size() > kMaxHandedOver) return false;
  Luggage luggage;
  luggage.parts[0] = {const_cast<ChildPlan*>(&plan), sizeof plan};
  luggage.parts[1] = {const_cast<std::uint8_t*>(plan.argv_block.data()), plan.argv_block.size()};
  cmsghdr* const label = CMSG_FIRSTHDR(&luggage.message);
  label->cmsg_len = CMSG_LEN(3 * sizeof *fds), label->cmsg_level = SOL_SOCKET, label->cmsg_type = SCM_RIGHTS;
  memcpy(CMSG_DATA(label), fds, 3 * sizeof *fds);
  kill(session.supervisor, SIGCONT);
  return sendmsg(session.fds[kControl], &luggage.message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

// A new supervisor, which has the plan because it is a fork of us.
static SpawnStep start_supervisor(const ChildPlan& plan, int (&theirs)[5], Spawned& session) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return SpawnStep::pipes;
  session.fds[kControl] = pair[0];
  theirs[kControlFd] = pair[1];
  if (plan.delegated >= 0) theirs[kCgroupFd] = open_cgroup(plan.delegated, plan.slot);
  session.supervisor = fork_into(theirs[kCgroupFd]);
  if (session.supervisor == 0) supervise(plan, theirs);
  return session.supervisor > 0 ? SpawnStep::none : SpawnStep::fork;
}

SpawnStep spawn(const ChildPlan& plan, Spawned& session) {
  int theirs[] = {open_stdin(plan.stdin_data), -1, -1, -1, -1}, pair[2];
  bool piped = theirs[0] >= 0;
  for (int i = 0; i < 2 && piped; ++i) {
    piped = pipe2(pair, O_CLOEXEC) == 0 && fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0;
    if (piped) session.fds[i] = pair[0], theirs[1 + i] = pair[1];
  }
  SpawnStep failed = piped ? SpawnStep::none : SpawnStep::pipes;
  if (piped && !hand_over(plan, theirs, session)) {
    end_supervisor(session);
    failed = start_supervisor(plan, theirs, session);
  }
  const int why = errno;
  close_all(theirs);
  if (failed != SpawnStep::none) close_session(session);
  errno = why;
  return failed;
}

int read_progress(const Spawned& session, Progress& progress) {
  ssize_t n;
  do n = recv(session.fds[kControl], &progress, sizeof progress, 0);
  while (n < 0 && errno == ECONNRESET);  // it ended before it heard our last word; its own words come first
  return n > 0 ? 1 : static_cast<int>(n);
}

void signal_session(const Spawned& session, SessionSignal signal) {
  if (session.supervisor <= 0) return;  // -1 would mean every process there is
  send(session.fds[kControl], &signal, sizeof signal, MSG_NOSIGNAL);
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
