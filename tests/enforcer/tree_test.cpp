// The walk over all descendants, without a supervisor.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "enforcer/spawn.hpp"
#include "tests/support/session.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

pid_t forked(void (*body)()) {
  sigset_t terminate, before;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigprocmask(SIG_BLOCK, &terminate, &before);
  const pid_t pid = fork();
  if (pid == 0) signal(SIGTERM, SIG_DFL);  // the test framework listens to it
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid != 0) return pid;
  body();
  for (;;) pause();
}

}  // namespace

TEST_CASE("only what is below is signalled, and spared children are not") {
  LeavesNothing watch;
  const pid_t a = forked([] {}), b = forked([] {});
  const pid_t spare[] = {b};
  signal_descendants(SIGKILL, spare);
  int status = 0;
  CHECK(waitpid(a, &status, 0) == a);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(waitpid(b, nullptr, WNOHANG) == 0);
  CHECK(alive(getppid()));
  signal_descendants(SIGTERM);
  CHECK(waitpid(b, &status, 0) == b);
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("a process whose name looks like the rest of its line is found") {
  LeavesNothing watch;
  const pid_t child = forked([] {
    prctl(PR_SET_NAME, ") S 1 (x) S 1 ");
    if (fork() == 0) {
      prctl(PR_SET_NAME, ") S 1 1 (");
      for (;;) pause();
    }
  });
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/task/%d/children", child, child);
  std::string below;
  while ((below = read_file(name)).empty()) poll(nullptr, 0, 1);
  const pid_t grandchild = std::atoi(below.c_str());
  signal_descendants(SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(waitpid(grandchild, nullptr, 0) == grandchild);  // both were hit in one walk
}

TEST_CASE("a process that was stopped hears SIGTERM") {
  LeavesNothing watch;
  const pid_t child = forked([] {});
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  REQUIRE(WIFSTOPPED(status));
  signal_descendants(SIGTERM);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("strays are killed with all they leave behind") {
  LeavesNothing watch;
  forked([] {
    for (int i = 0; i < 5; ++i)
      if (fork() == 0) setsid();
  });
  while (reap_strays({}) != 0) poll(nullptr, 0, 1);
}
