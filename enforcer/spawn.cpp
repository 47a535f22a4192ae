#include "enforcer/spawn.hpp"

namespace x0x {

bool plan_rule(const BlobView& table, std::uint32_t rule, const char* const* argv, const char* home, ChildPlan& plan) {
  const Options o = table.options(rule);
  if (o.env_count > kMaxChildEnv || o.writable_count > kMaxWritable) return false;
  const Text exe = table.text(o.exe), cwd = table.text(o.cwd);
  plan = {.file = exe.present() ? exe.c_str() : argv[0],
          .argv = argv,
          .cwd = (cwd.present() ? cwd : table.text(table.header().default_cwd)).c_str(),
          .options = o};
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

namespace {

// The cgroup of a slot. Two enforcers may share the one above; neither may touch the other's sessions. One in which a
// command has made cgroups of its own could not be removed after a kill: it is not used again.
int open_cgroup(int delegated, std::uint32_t slot) {
  snprintf(session_cgroup, sizeof session_cgroup, "../x0x-%d-%u", getpid(), slot);
  const char* const name = session_cgroup + strlen("../");
  mkdirat(delegated, name, 0755);  // or it is there, and empty
  struct stat group {};
  const int fd = openat(delegated, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fstat(fd, &group) == 0 && group.st_nlink == 2 ? fd : (close(fd), -1);
}

void close_all(std::span<const int> fds) {
  for (const int fd : fds) close(fd);  // -1 does no harm
}

// A fork, into the cgroup if there is one and it can be entered.
pid_t fork_into(int cgroup) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) args.flags = CLONE_INTO_CGROUP, args.cgroup = static_cast<std::uint64_t>(cgroup);
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  return pid < 0 && cgroup >= 0 ? fork_into(-1) : static_cast<pid_t>(pid);
}

}  // namespace

SpawnStep spawn(const ChildPlan& plan, Spawned& out) {
  out = {};
  int theirs[] = {-1, -1, -1, -1, -1}, pair[2];
  bool piped = true;
  for (int i = 0; i < 4 && piped; ++i) {
    const bool pipe = i != kControl;
    piped = (pipe ? pipe2(pair, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) == 0;
    if (piped) out.fds[i] = pair[i == 0], theirs[i] = pair[i != 0], fcntl(out.fds[i], F_SETFL, O_NONBLOCK);
  }
  if (piped && plan.delegated >= 0) theirs[kCgroup] = open_cgroup(plan.delegated, plan.slot);
  if (piped) out.supervisor = fork_into(theirs[kCgroup]);
  if (out.supervisor == 0) supervise(plan, theirs);
  const int why = errno;
  const bool started = out.supervisor > 0;
  close_all(theirs);
  if (!started) close_session(out);
  errno = why;
  return started ? SpawnStep::none : piped ? SpawnStep::fork : SpawnStep::pipes;
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

void close_session(Spawned& session) {
  close_all(session.fds);
  if (session.supervisor > 0) waitpid(session.supervisor, nullptr, 0);
  session = {};
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
