// The process between the enforcer and a command: starts it, holds all it starts, and never lets go.
//
// It is a fork of the enforcer and runs no program of its own. Every orphan of the session becomes its child, so the
// session is over exactly when it has no child left. When the enforcer dies, the control socket ends and it kills
// everything. The command may send it any signal: all are blocked; SIGKILL and SIGSTOP, which cannot be, are the
// enforcer's business (reap_strays, SessionSignal). Shown by tests/enforcer/supervisor_test.cpp.
#include "enforcer/spawn.hpp"

namespace x0x {

static Progress progress;
static const char* home;  // the enforcer's
static char* argv[blob::kMaxArgc + 1];

// All 64 signals at once, bit n-1 for signal n: glibc's own functions leave out two that anybody can send.
static void set_signal_mask(std::uint64_t mask) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

// ---- from a fork to the program

// Like execvp, but the program is settled before execve, which takes regular files only: a script whose interpreter is
// missing must not send the search on to a namesake. A name too long for `path` is too long for the kernel too.
static const char* find_program(const char* name) {
  static char path[PATH_MAX];
  if (name[0] == '/') return access(name, X_OK) == 0 ? name : nullptr;
  const bool bare = name[0] != '\0' && strchr(name, '/') == nullptr;
  errno = EINVAL;
  for (const char *directory = kChildPath, *end; bare; directory = end + 1) {
    end = strchrnul(directory, ':');
    snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(end - directory), directory, name);
    if (access(path, X_OK) == 0) return path;
    if (*end == '\0') break;
  }
  return nullptr;
}

// A device that has taken the file's place must not hold us up.
static bool has_digest(int file, const std::uint8_t* expected) {
  struct stat info;
  crypto_hash_sha256_state state;
  std::uint8_t content[65536], digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_init(&state);
  ssize_t n = fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? 1 : -1;
  while (n > 0 && (n = read(file, content, sizeof content)) > 0)
    crypto_hash_sha256_update(&state, content, static_cast<std::size_t>(n));
  crypto_hash_sha256_final(&state, digest);
  if (n == 0) errno = EBADMSG;
  return n == 0 && sodium_memcmp(digest, expected, sizeof digest) == 0;
}

// Ours, because the command is given it as it is. Where the policy says nothing, we decide.
static bool set_environment(const BlobView& table, const Options& o) {
  bool done = clearenv() == 0;
  for (std::uint32_t i = 0; done && i < o.env_count; ++i)
    done = putenv(const_cast<char*>(table.item(o.first_item + i).c_str())) == 0;
  return done && setenv("PATH", kChildPath, 0) == 0 && setenv("HOME", home, 0) == 0 &&
         setenv("LANG", "C.UTF-8", 0) == 0 && setenv("LC_ALL", "C.UTF-8", 0) == 0;
}

// The steps, in order: the one that failed, errno says why. Runs in the supervisor's memory (vfork).
static SpawnStep become_program(const BlobView& table, const Options& o) {
  if (fcntl(STDERR_FILENO, F_GETFD) < 0) return SpawnStep::pipes;  // a command has left us no room for descriptors
  umask(027);
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return SpawnStep::session;
  const Text cwd = table.text(table.text(o.cwd).present() ? o.cwd : table.header().default_cwd);
  if (cwd.present() && chdir(cwd.c_str()) != 0) return SpawnStep::cwd;

  const char* const program = find_program(table.text(o.exe).present() ? table.text(o.exe).c_str() : argv[0]);
  const bool pins = (o.flags & blob::kOptionHasSha256) != 0;
  const int pinned = pins && program != nullptr ? open(program, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (program == nullptr || (pins && pinned < 0)) return SpawnStep::open_exe;
  if (pins && !has_digest(pinned, o.sha256)) return SpawnStep::digest;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return SpawnStep::no_new_privs;
  if ((o.flags & blob::kOptionHasWritable) != 0 && !limit_writes(table, o)) return SpawnStep::landlock;
  if ((o.flags & blob::kOptionNoNetwork) != 0 && !limit_network()) return SpawnStep::network;
  if (!limit_resources(o)) return SpawnStep::rlimits;  // last: a limit on open files would hinder us

  set_signal_mask(0);
  pins ? execveat(pinned, "", argv, environ, AT_EMPTY_PATH) : execve(program, argv, environ);
  return SpawnStep::exec;
}

// ---- the supervisor

static void tell() { send(kControlFd, &progress, sizeof progress, MSG_NOSIGNAL); }

// Reaps what has died. False: no child is left.
static bool reap() {
  for (int ended = 0;;) {
    const pid_t pid = waitpid(-1, &ended, WNOHANG);
    if (pid <= 0) return pid == 0;
    if (pid == progress.command && progress.status < 0) progress.status = ended;  // later its number may be another's
  }
}

// Until a child has died, the enforcer has given an order, or the time is over. That the enforcer is dead is one too.
static SessionSignal rest(int control, timespec at_most) {
  const std::uint64_t all_but_death = ~(std::uint64_t{1} << (SIGCHLD - 1));
  pollfd ready{control, POLLIN, 0};
  auto order = SessionSignal::none;
  if (syscall(SYS_ppoll, &ready, 1, &at_most, &all_but_death, sizeof all_but_death) <= 0) return order;
  return recv(control, &order, sizeof order, 0) > 0 ? order : SessionSignal::kill;
}

// The file is left to our end to close.
static bool put(const char* name, char value) {
  return write(openat(kCgroupFd, name, O_WRONLY | O_CLOEXEC), &value, 1) == 1;
}

// A supervisor in a cgroup leaves it and kills all that is in it; the walk follows, because others may have left it
// too. It is repeated at once when a child has died, and soon in any case: one may have come to us meanwhile.
static void kill_all() {
  tell();  // how the command ended, if it has: we may not live to say it later
  if (put("../cgroup.procs", '0')) put("cgroup.kill", '1');
  for (; reap(); rest(-1, {0, 10'000'000})) signal_descendants(SIGKILL);
  progress.spent = true;
}

static void start(const ChildPlan& plan) {
  const Options options = plan.table->options(plan.rule);
  std::size_t argc = 0;
  for (Bytes rest = plan.argv_block; !rest.empty();)
    argv[argc++] = reinterpret_cast<char*>(const_cast<std::uint8_t*>(next_token(rest).data()));
  argv[argc] = nullptr;
  const bool ready = set_environment(*plan.table, options);
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): nobody but this supervisor waits for the child
  const pid_t command = vfork();  // returns when the program runs or has failed to
  if (command == 0) {
    progress.failed = ready ? become_program(*plan.table, options) : SpawnStep::environment;
    progress.error = errno;
    _exit(127);
  }
  if (command < 0) progress = {.failed = SpawnStep::fork, .error = errno};
  close_range(0, 2, 0);
  if (progress.failed == SpawnStep::none) progress.command = command;
}

// From a plan to the end of every process that came of it.
static void run(const ChildPlan& plan) {
  progress = {};
  start(plan);
  progress.spent = progress.failed != SpawnStep::none;
  tell();
  while (reap()) {
    const bool ended = progress.status >= 0;  // and has left others
    const SessionSignal order = ended ? SessionSignal::kill : rest(kControlFd, {60, 0});
    if (order == SessionSignal::terminate) signal_descendants(SIGTERM);
    if (order == SessionSignal::kill) kill_all();
  }
  progress.gone = true;
  tell();
}

// The next plan; what comes with it takes the lowest descriptors that are free, 0-2. Null: the enforcer has ended.
static const ChildPlan* next_plan() {
  static ChildPlan plan;
  static std::uint8_t argv_block[kMaxHandedOver];
  alignas(cmsghdr) char room[CMSG_SPACE(kControlFd * sizeof(int))];
  iovec parts[] = {{&plan, sizeof plan}, {argv_block, sizeof argv_block}};
  msghdr message{nullptr, 0, parts, 2, room, sizeof room, 0};
  const ssize_t n = recvmsg(kControlFd, &message, 0);
  if (n <= 0) return nullptr;
  if (n == sizeof(SessionSignal)) return next_plan();  // an order that came too late
  plan.argv_block = {argv_block, static_cast<std::size_t>(n) - sizeof plan};
  return &plan;
}

void reset_signals() {
  const std::uint64_t defaults[4] = {};  // the kernel's own struct: handler, flags, restorer, mask
  for (int n = 1; n <= 64; ++n) syscall(SYS_rt_sigaction, n, defaults, nullptr, sizeof(std::uint64_t));
  set_signal_mask(~std::uint64_t{0});
}

void supervise(const ChildPlan& first, const int (&fds)[5]) {
  // Every descriptor goes to its place. None lies in another's way: stdin and the pipes were opened first, so the
  // control socket and the cgroup are beyond 4, and what they replace has been moved or is not ours.
  for (int i = 0; i < 5; ++i) dup3(fds[i], i, i < kControlFd ? 0 : O_CLOEXEC);
  close_range(fds[kCgroupFd] < 0 ? kCgroupFd : kCgroupFd + 1, ~0u, 0);

  set_signal_mask(~std::uint64_t{0});
  signal(SIGCHLD, [](int) {});  // to end a rest
  prctl(PR_SET_NAME, "x0x-supervisor");
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // stopped by its command, it must still notice the enforcer's end
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  home = getenv("HOME") != nullptr ? getenv("HOME") : "/";
  for (const ChildPlan* plan = &first; plan != nullptr; plan = progress.spent ? nullptr : next_plan()) run(*plan);
  _exit(0);
}

}  // namespace x0x
