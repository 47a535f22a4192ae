// A command for the tests of spawning: does one thing and says on stdout what came of it. It is built without
// sanitizers, because it runs under limits that leave them no room.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

extern char** environ;

namespace {

void say(const char* what, long value) {
  printf("%s=%ld\n", what, value);
  fflush(stdout);
}

// 0, or the errno.
long result(long returned) { return returned < 0 ? errno : 0; }

// What it was given, one fact per line.
int state(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("arg %zu:%s\n", strlen(argv[i]), argv[i]);
  for (char** e = environ; *e != nullptr; ++e)
    if (strncmp(*e, "__LLVM_PROFILE_", 15) != 0) printf("env %s\n", *e);  // clang's, of the probe itself
  DIR* fds = opendir("/proc/self/fd");
  for (dirent* d; (d = readdir(fds)) != nullptr;)
    if (d->d_name[0] != '.' && atoi(d->d_name) != dirfd(fds)) printf("fd %s\n", d->d_name);
  closedir(fds);
  printf("umask=%o\n", umask(0));
  char cwd[4096];
  printf("cwd=%s\n", getcwd(cwd, sizeof cwd));
  say("own_session", getsid(0) == getpid());
  say("own_group", getpgrp() == getpid());
  say("no_tty", result(open("/dev/tty", O_RDWR)));
  say("no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  say("stdin_blocks", (fcntl(0, F_GETFL) & O_NONBLOCK) == 0);
  say("stdout_blocks", (fcntl(1, F_GETFL) & O_NONBLOCK) == 0);
  FILE* status = fopen("/proc/self/status", "r");
  for (char line[256]; fgets(line, sizeof line, status) != nullptr;)
    if (strncmp(line, "Sig", 3) == 0 && strncmp(line, "SigQ", 4) != 0) fputs(line, stdout);
  fclose(status);
  return 0;
}

int network() {
  for (const int domain : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK})
    say(("socket" + std::to_string(domain)).c_str(), result(socket(domain, SOCK_DGRAM, 0)));
  int pair[2];
  say("pair_unix", result(socketpair(AF_UNIX, SOCK_STREAM, 0, pair)));
  say("pair_inet", result(socketpair(AF_INET, SOCK_STREAM, 0, pair)));
  // A domain is an int to the kernel: junk in the upper half must not get past the filter.
  say("high_half", result(syscall(SYS_socket, (1L << 32) | AF_INET, SOCK_DGRAM, 0)));
  io_uring_params params{};
  say("io_uring", result(syscall(SYS_io_uring_setup, 4, &params)));
  const long self = syscall(SYS_pidfd_open, getpid(), 0);
  say("pidfd_getfd", result(syscall(SYS_pidfd_getfd, self, 0, 0)));
  return 0;
}

#if defined(__x86_64__)
int call_32bit() {
  long answer;
  asm volatile("int $0x80" : "=a"(answer) : "a"(20L) : "memory");  // getpid
  say("getpid32", answer == getpid());
  return 0;
}

int call_x32() {
  say("getpid_x32", result(syscall(0x40000000 | SYS_getpid)));
  return 0;
}
#endif

// Tries every way to change the file system in a directory that holds `file`, `victim`, `empty/` and
// `from/moved`.
int writes(const std::string& d) {
  const auto path = [&d](const char* name) { return d + "/" + name; };
  const auto close_after = [](int fd) {
    const long r = result(fd);
    if (fd >= 0) close(fd);
    return r;
  };
  say("create", close_after(open(path("new").c_str(), O_WRONLY | O_CREAT, 0644)));
  say("write", close_after(open(path("file").c_str(), O_WRONLY)));
  say("append", close_after(open(path("file").c_str(), O_WRONLY | O_APPEND)));
  say("truncate", result(truncate(path("file").c_str(), 0)));
  say("open_truncate", close_after(open(path("file").c_str(), O_RDONLY | O_TRUNC)));
  say("mkdir", result(mkdir(path("newdir").c_str(), 0755)));
  say("rmdir", result(rmdir(path("empty").c_str())));
  say("symlink", result(symlink("file", path("link").c_str())));
  say("link", result(link(path("file").c_str(), path("hard").c_str())));
  say("fifo", result(mkfifo(path("fifo").c_str(), 0644)));
  say("rename", result(rename(path("victim").c_str(), path("renamed").c_str())));
  say("move", result(rename(path("from/moved").c_str(), path("moved").c_str())));
  say("unlink", result(unlink(path("file2").c_str())));
  sockaddr un{};
  un.sa_family = AF_UNIX;
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  char name[128] = {};
  memcpy(name, &un.sa_family, sizeof un.sa_family);
  snprintf(name + 2, sizeof name - 2, "%s", path("sock").c_str());
  say("bind", result(bind(s, reinterpret_cast<sockaddr*>(name), static_cast<socklen_t>(strlen(name + 2) + 3))));
  say("read", close_after(open(path("file").c_str(), O_RDONLY)));
  say("list", close_after(open(d.c_str(), O_RDONLY | O_DIRECTORY)));
  say("dev_null", close_after(open("/dev/null", O_WRONLY | O_TRUNC)));
  const pid_t pid = fork();
  if (pid == 0) execl("/bin/true", "true", nullptr), _exit(1);
  int status = -1;
  waitpid(pid, &status, 0);
  say("run", status);
  return 0;
}

int limits() {
  const struct {
    const char* name;
    __rlimit_resource which;
  } all[] = {{"core", RLIMIT_CORE},   {"cpu", RLIMIT_CPU},      {"as", RLIMIT_AS},
             {"fsize", RLIMIT_FSIZE}, {"files", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}};
  for (const auto& one : all) {
    rlimit r;
    getrlimit(one.which, &r);
    say((std::string(one.name) + "_soft").c_str(), static_cast<long>(r.rlim_cur));
    say((std::string(one.name) + "_hard").c_str(), static_cast<long>(r.rlim_max));
  }
  return 0;
}

// Forks until the kernel says no, at most `most` times; each child waits.
int bomb(int most) {
  int made = 0;
  long why = 0;
  while (made < most) {
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGTERM, SIG_IGN);
      for (;;) pause();
    }
    if (pid < 0) {
      why = errno;
      break;
    }
    ++made;
  }
  say("made", made);
  say("why", why);
  return 0;
}

// Never stops forking; for a tree that grows while it is being killed.
[[noreturn]] void breed() {
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    if (fork() < 0) usleep(1000);
    if (fork() == 0) setsid();
    usleep(3000);
    if (rand() % 2 == 0) _exit(0);
  }
}

void report_and_stay() {
  signal(SIGTERM, SIG_IGN);
  char line[32];
  const int n = snprintf(line, sizeof line, "pid=%d\n", getpid());
  if (write(1, line, static_cast<size_t>(n)) != n) _exit(1);
  for (;;) pause();
}

// A word from the test, which may come early: SIGUSR1.
sigset_t the_word() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return set;
}
void expect_word() {
  const sigset_t word = the_word();
  pthread_sigmask(SIG_BLOCK, &word, nullptr);
}
void await_word() {
  const sigset_t word = the_word();
  int signal = 0;
  sigwait(&word, &signal);
}

// Seven that ignore SIGTERM: a child, one with a session of its own, a double fork, a double fork with setsid
// in between, a child of another thread, a grandchild below a child that stays, and one that is not dumpable.
int tree(const char* end) {
  signal(SIGTERM, SIG_IGN);
  expect_word();
  if (fork() == 0) report_and_stay();
  if (fork() == 0) setsid(), report_and_stay();
  if (fork() == 0) {
    if (fork() == 0) report_and_stay();
    _exit(0);
  }
  if (fork() == 0) {
    setsid();
    if (fork() == 0) setsid(), report_and_stay();
    _exit(0);
  }
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        if (fork() == 0) report_and_stay();
        for (;;) pause();
      },
      nullptr);
  if (fork() == 0) {
    if (fork() == 0) report_and_stay();
    for (;;) pause();
  }
  if (fork() == 0) prctl(PR_SET_DUMPABLE, 0), report_and_stay();
  say("main", getpid());
  if (strcmp(end, "exit") == 0) await_word(), _exit(7);
  if (strcmp(end, "kill-supervisor") == 0) await_word(), kill(getppid(), SIGKILL);
  for (;;) pause();
}

// A chain of processes, each the child of the one before.
int chain(int length) {
  while (length > 0 && fork() == 0) --length;
  report_and_stay();
  return 0;
}

int annoy_supervisor() {
  expect_word();
  for (int number = 1; number <= 64; ++number)
    if (number != SIGKILL && number != SIGSTOP)
      for (int i = 0; i < 3; ++i) syscall(SYS_kill, getppid(), number);
  say("done", 1);
  await_word();
  return 3;
}

int stop_supervisor() {
  kill(getppid(), SIGSTOP);
  say("main", getpid());
  for (;;) pause();
}

int polite() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (write(1, "term\n", 5) != 5) _exit(1);
    waitpid(-1, nullptr, 0);  // the command ends last, so that its child has time to answer
    _exit(9);
  };
  sigaction(SIGTERM, &action, nullptr);
  if (fork() == 0) {
    say("child", getpid());
    for (;;) pause();
  }
  say("main", getpid());
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "state") return state(argc, argv);
  if (what == "network") return network();
#if defined(__x86_64__)
  if (what == "call-32bit") return call_32bit();
  if (what == "call-x32") return call_x32();
#endif
  if (what == "writes") return writes(argv[2]);
  if (what == "limits") return limits();
  if (what == "bomb") return bomb(atoi(argv[2]));
  if (what == "breed") say("main", getpid()), breed();
  if (what == "tree") return tree(argv[2]);
  if (what == "chain") return chain(atoi(argv[2]));
  if (what == "annoy-supervisor") return annoy_supervisor();
  if (what == "stop-supervisor") return stop_supervisor();
  if (what == "polite") return polite();
  if (what == "stay") say("main", getpid()), pause();
  if (what == "touch") return close(open(argv[2], O_WRONLY | O_CREAT, 0644));
  return 64;
}
