// The process between the enforcer and a command: starts it, holds all it starts, and never lets go.
//
// It is a fork of the enforcer and runs no program of its own. Every orphan of the session becomes its child, so the
// session is over exactly when it has no child left. When the enforcer dies, the control socket ends and it kills
// everything. The command may send it any signal: all are blocked; SIGKILL and SIGSTOP, which cannot be, are the
// enforcer's business (reap_strays, SessionSignal). Shown by tests/enforcer/supervisor_test.cpp.
#include "enforcer/spawn.hpp"

namespace x0x {

static Progress progress;
static const char* argv[blob::kMaxArgc + 1];

// All 64 signals at once, bit n-1 for signal n: glibc's own functions leave out two that anybody can send.
static void set_signal_mask(std::uint64_t mask) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

// ---- from a fork to the program

static bool is_program(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && (S_ISREG(info.st_mode) || (errno = EACCES, false)) && access(path, X_OK) == 0;
}

// Like execvp, but the program is settled before execve: a script whose interpreter is missing must not send the search
// on to a namesake. A name too long for `path` is too long for the kernel too.
static const char* find_program(const char* name, char (&path)[PATH_MAX]) {
  if (name[0] == '/') return is_program(name) ? name : nullptr;
  if (name[0] == '\0' || strchr(name, '/') != nullptr) return errno = EINVAL, nullptr;
  int why = ENOENT;
  for (const char* end = strchr(kChildPath, '='); *end != '\0';) {
    const char* const directory = end + 1;
    end = strchrnul(directory, ':');
    snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(end - directory), directory, name);
    if (is_program(path)) return path;
    if (errno != ENOENT) why = errno;
  }
  return errno = why, nullptr;
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

static void require(SpawnStep step, bool done) {
  if (done) return;
  progress = {.failed = step, .error = errno};
  _exit(127);
}

// The steps, in order: ends in execve, or in `progress` and _exit. Runs in the supervisor's memory (vfork) and writes
// to nothing else there.
[[noreturn]] static void become_program(const ChildPlan& plan) {
  umask(027);
  require(SpawnStep::session, setsid() >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  require(SpawnStep::cwd, plan.cwd == nullptr || chdir(plan.cwd) == 0);

  char path[PATH_MAX];
  const char* const program = find_program(plan.file != nullptr ? plan.file : argv[0], path);
  const bool pins = program != nullptr && plan.has(blob::kOptionHasSha256);
  const int pinned = pins ? open(program, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  require(SpawnStep::open_exe, program != nullptr && (!pins || pinned >= 0));
  require(SpawnStep::digest, !pins || has_digest(pinned, plan.options.sha256));
  require(SpawnStep::no_new_privs, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  require(SpawnStep::landlock, !plan.has(blob::kOptionHasWritable) || limit_writes(plan.writable));
  require(SpawnStep::network, !plan.has(blob::kOptionNoNetwork) || limit_network());
  require(SpawnStep::rlimits, limit_resources(plan.options));  // last: a limit on open files would hinder us

  set_signal_mask(0);
  const auto args = const_cast<char*const*>(argv), envp = const_cast<char*const*>(plan.envp);
  pins ? execveat(pinned, "", args, envp, AT_EMPTY_PATH) : execve(program, args, envp);
  require(SpawnStep::exec, false);
  __builtin_unreachable();
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

// Until a child has died, the enforcer has something to say, or the time is over. True: the enforcer.
static bool rest(int control, timespec at_most) {
  const std::uint64_t all_but_death = ~(std::uint64_t{1} << (SIGCHLD - 1));
  pollfd ready{control, POLLIN, 0};
  return syscall(SYS_ppoll, &ready, 1, &at_most, &all_but_death, sizeof all_but_death) > 0;
}

// The file is left to our end to close.
static bool put(const char* name, char value) {
  return write(openat(kCgroupFd, name, O_WRONLY | O_CLOEXEC), &value, 1) == 1;
}

// A supervisor in a cgroup leaves it and kills all that is in it; the walk follows, because others may have left it
// too. It is repeated at once when a child has died, and soon in any case: one may have come to us meanwhile.
static void kill_all() {
  if (put("../cgroup.procs", '0')) put("cgroup.kill", '1');
  for (; reap(); rest(-1, {0, 10'000'000})) signal_descendants(SIGKILL);
  unlinkat(kCgroupFd, session_cgroup, AT_REMOVEDIR);
  progress.spent = true;
}

// Until the command has ended. True: others are left.
static bool watch() {
  for (;;) {
    const bool left = reap();
    if (!left || progress.status >= 0) return left;
    if (!rest(kControlFd, {60, 0})) continue;
    auto order = SessionSignal::kill;  // also what it means when the enforcer is dead
    const ssize_t n = recv(kControlFd, &order, 1, MSG_DONTWAIT);
    if (order == SessionSignal::terminate)
      signal_descendants(SIGTERM);
    else if (n >= 0 || errno != EAGAIN)
      kill_all();
  }
}

// From a plan to the end of every process that came of it.
static void run(const ChildPlan& plan) {
  progress = {};
  std::size_t argc = 0;
  for (Bytes rest = plan.argv_block; !rest.empty();)
    argv[argc++] = reinterpret_cast<const char*>(next_token(rest).data());
  argv[argc] = nullptr;
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): nobody but this supervisor waits for the child
  const pid_t command = vfork();  // returns when the program runs or has failed to
  if (command == 0) become_program(plan);
  if (command < 0) progress = {.failed = SpawnStep::fork, .error = errno};
  close_range(0, 2, 0);
  if (progress.failed == SpawnStep::none) progress.command = command, tell();
  if (watch()) tell(), kill_all();
  progress.spent |= progress.failed == SpawnStep::fork;
  progress.gone = true;
  tell();
}

// The next plan; what comes with it takes the lowest descriptors that are free, 0-2. Null: the enforcer has ended.
static const ChildPlan* next_plan() {
  static ChildPlan plan;
  static std::uint8_t argv_block[kMaxHandedOver];
  for (;;) {
    Luggage luggage;
    luggage.parts[0] = {&plan, sizeof plan}, luggage.parts[1] = {argv_block, sizeof argv_block};
    const ssize_t n = recvmsg(kControlFd, &luggage.message, 0);
    if (n <= 0) return nullptr;
    if ((luggage.message.msg_flags & MSG_CTRUNC) != 0) {  // a command has left us without room for descriptors
      progress = {.failed = SpawnStep::pipes, .error = EMFILE, .gone = true, .spent = true};
      return tell(), nullptr;
    }
    if (n == sizeof(SessionSignal)) continue;  // an order that came too late
    plan.argv_block = {argv_block, static_cast<std::size_t>(n) - sizeof plan};
    return &plan;
  }
}

void reset_signals() {
  const std::uint64_t defaults[4] = {};  // the kernel's own struct: handler, flags, restorer, mask
  for (int n = 1; n <= 64; ++n) syscall(SYS_rt_sigaction, n, defaults, nullptr, sizeof(std::uint64_t));
  for (const int ignored : kIgnoredSignals) signal(ignored, SIG_IGN);
}

void supervise(const ChildPlan& first, const int (&fds)[5]) {
  // Every descriptor goes to its place. None lies in another's way: stdin and the pipes were opened first, so the
  // control socket and the cgroup are beyond 4, and what they replace has been moved or is not ours.
  for (int i = 0; i < 5; ++i) dup3(fds[i], i, i < kControlFd ? 0 : O_CLOEXEC);
  close_range(fds[kCgroupFd] < 0 ? kCgroupFd : kCgroupFd + 1, ~0u, 0);
  fcntl(kControlFd, F_SETFL, 0);  // we wait for our orders

  // The enforcer's signal settings end here; the command inherits these.
  set_signal_mask(~std::uint64_t{0});
  for (const int ignored : kIgnoredSignals) signal(ignored, SIG_DFL);
  signal(SIGCHLD, [](int) {});  // to end a rest
  prctl(PR_SET_NAME, "x0x-supervisor");
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // stopped by its command, it must still notice the enforcer's end
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const ChildPlan* plan = &first; plan != nullptr; plan = progress.spent ? nullptr : next_plan()) run(*plan);
  _exit(0);
}

}  // namespace x0x
