#include "enforcer/supervisor.hpp"

#include "enforcer/sandbox.hpp"
#include "enforcer/system.hpp"
#include "enforcer/tree.hpp"

namespace x0x {
namespace {

// ---- from a fork to the program

struct Failure {
  SpawnStep step = SpawnStep::none;
  int error = 0;
};

// All 64 signals at once, bit n-1 for signal n: glibc's own functions leave out two that anybody can send.
void set_signal_mask(std::uint64_t mask) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask); }

bool is_program(const char* path) {
  struct stat info;
  if (stat(path, &info) != 0) return false;
  if (!S_ISREG(info.st_mode)) return errno = EACCES, false;
  return access(path, X_OK) == 0;
}

// Like execvp, but the program is settled before execve: a script whose interpreter is missing must not send
// the search on to a namesake.
const char* find_program(const char* name, char (&path)[PATH_MAX]) {
  if (name[0] == '/') return is_program(name) ? name : nullptr;
  if (name[0] == '\0' || strchr(name, '/') != nullptr) return errno = EINVAL, nullptr;
  int why = ENOENT;
  for (const char* end = strchr(kChildPath, '='); *end != '\0';) {
    const char* const directory = end + 1;
    end = strchrnul(directory, ':');
    if (snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(end - directory), directory, name) >= PATH_MAX)
      return errno = ENAMETOOLONG, nullptr;
    if (is_program(path)) return path;
    if (errno != ENOENT) why = errno;
  }
  return errno = why, nullptr;
}

// O_NONBLOCK: a pipe that has taken the file's place must not hold us up.
int open_pinned(const char* path) {
  const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  return fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? file : -1;
}

bool has_digest(int file, const std::uint8_t* expected) {
  crypto_hash_sha256_state state;
  std::uint8_t content[65536], digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_init(&state);
  ssize_t n;
  while ((n = read(file, content, sizeof content)) > 0)
    crypto_hash_sha256_update(&state, content, static_cast<std::size_t>(n));
  crypto_hash_sha256_final(&state, digest);
  if (n == 0) errno = EBADMSG;
  return n == 0 && sodium_memcmp(digest, expected, sizeof digest) == 0;
}

// The steps, in order: ends in execve, or in `failure` and _exit. Runs in the supervisor's memory (vfork) and
// writes to nothing else there.
[[noreturn]] void become_program(const ChildPlan& plan, Failure& failure) {
  const auto require = [&failure](SpawnStep step, bool done) {
    if (done) return;
    failure = {step, errno};
    _exit(127);
  };
  umask(027);
  require(SpawnStep::session, setsid() >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  require(SpawnStep::cwd, plan.cwd == nullptr || chdir(plan.cwd) == 0);

  char path[PATH_MAX];
  const char* program = find_program(plan.file, path);
  const int pinned = program != nullptr && plan.sha256 != nullptr ? open_pinned(program) : -1;
  require(SpawnStep::open_exe, program != nullptr && (plan.sha256 == nullptr || pinned >= 0));
  require(SpawnStep::digest, plan.sha256 == nullptr || has_digest(pinned, plan.sha256));
  require(SpawnStep::no_new_privs, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  require(SpawnStep::landlock, !plan.limit_writes || limit_writes(plan.writable));
  require(SpawnStep::network, plan.network || limit_network());
  require(SpawnStep::rlimits, limit_resources(plan.limits));  // last: a limit on open files would hinder us

  set_signal_mask(0);
  const auto argv = const_cast<char*const*>(plan.argv), envp = const_cast<char*const*>(plan.envp);
  require(SpawnStep::exec,
          pinned >= 0 ? execveat(pinned, "", argv, envp, AT_EMPTY_PATH) == 0 : execve(program, argv, envp) == 0);
  __builtin_unreachable();
}

// ---- the supervisor

pid_t command = -1;
int status = 0;
bool exited = false;

void tell(std::initializer_list<SupervisorEvent> events) {
  send(kControl, events.begin(), events.size() * sizeof(SupervisorEvent), MSG_NOSIGNAL);
}

// Reaps what has died; with flags 0 it waits until something has. False: no child is left.
bool reap(int flags) {
  for (int ended = 0;; flags = WNOHANG) {
    const pid_t pid = waitpid(-1, &ended, flags);
    if (pid <= 0) return pid == 0 || errno != ECHILD;
    if (pid == command && !exited) status = ended, exited = true;  // later its number may be another's
  }
}

bool put(const char* name, char value) {
  const int file = openat(kCgroup, name, O_WRONLY | O_CLOEXEC);
  const bool done = write(file, &value, 1) == 1;
  close(file);
  return done;
}

// Goes on until no child is left. A supervisor in a cgroup leaves it and kills all that is in it; the walk
// follows, because others may have left it too.
void kill_all() {
  if (put("../cgroup.procs", '0')) put("cgroup.kill", '1');
  while (reap(WNOHANG)) {
    if (signal_descendants(SIGKILL) == 0)
      poll(nullptr, 0, 10);  // one is there, and was just being handed to us
    else
      reap(0);
  }
}

// The enforcer's signal settings end here; the command inherits these.
void reset_signals() {
  set_signal_mask(~std::uint64_t{0});
  const std::uint64_t defaults[4] = {};  // the kernel's own struct: handler, flags, restorer, mask
  for (int n = 1; n <= 64; ++n) syscall(SYS_rt_sigaction, n, defaults, nullptr, sizeof(std::uint64_t));
}

// Returns when the program runs or has failed to.
void start(const ChildPlan& plan, Failure& failure) {
  command = vfork();
  if (command == 0) become_program(plan, failure);
  if (command < 0) failure = {SpawnStep::fork, errno};
}

// Until the command has ended. A child's end interrupts the wait; nothing else does. True: others are left.
bool watch() {
  struct sigaction wake {};
  wake.sa_handler = [](int) {};
  sigaction(SIGCHLD, &wake, nullptr);
  sigset_t waiting;
  memset(&waiting, 0xff, sizeof waiting);
  sigdelset(&waiting, SIGCHLD);
  for (;;) {
    const bool left = reap(WNOHANG);
    if (!left || exited) return left;
    pollfd ready{kControl, POLLIN, 0};
    if (ppoll(&ready, 1, nullptr, &waiting) <= 0) continue;
    auto order = SessionSignal::kill;  // also what it means when the enforcer is dead
    const ssize_t n = recv(kControl, &order, 1, MSG_DONTWAIT);
    if (order == SessionSignal::terminate)
      signal_descendants(SIGTERM);
    else if (n >= 0 || errno != EAGAIN)
      kill_all();
  }
}

}  // namespace

void supervise(const ChildPlan& plan) {
  reset_signals();
  prctl(PR_SET_NAME, "x0x-supervisor");
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // stopped by its command, it must still notice the enforcer's end
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Failure failure;
  start(plan, failure);
  close_range(0, 2, 0);
  const SupervisorEvent gone{EventKind::gone, 0, 0};
  if (failure.step != SpawnStep::none) {
    reap(0);
    tell({{EventKind::failed, static_cast<int>(failure.step), failure.error}, gone});
    _exit(0);
  }
  tell({{EventKind::started, command, 0}});
  const bool left = watch();
  const SupervisorEvent end{EventKind::exited, status, 0};
  if (left)
    tell({end}), kill_all(), tell({gone});
  else
    tell({end, gone});
  _exit(0);
}

}  // namespace x0x
