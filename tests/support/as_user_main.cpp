// A main for tests that touch the operating system. With X0X_TEST_AS=ordinary, and started as root, the tests
// run as an ordinary user in a cgroup that was handed over to that user, as a service manager would do it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <grp.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

// Nothing else runs under this number, not even the same tests at the same time, so limits on its processes can be
// tested.
const uid_t ordinary = 0x10000 + static_cast<uid_t>(getpid());

std::string make_cgroup() {
  for (const char* mount : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    const std::string group = std::string(mount) + "/x0x-test-" + std::to_string(getpid());
    if (access((std::string(mount) + "/cgroup.procs").c_str(), W_OK) != 0 || mkdir(group.c_str(), 0755) != 0) continue;
    for (const char* file : {"", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"})
      if (chown((group + file).c_str(), ordinary, ordinary) != 0) perror("chown");
    return group;
  }
  std::puts("no cgroup v2 that could be handed over: the tests run without");
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  const char* as = getenv("X0X_TEST_AS");
  std::string cgroup;
  if (as != nullptr && std::string(as) == "ordinary" && geteuid() == 0) {
    cgroup = make_cgroup();
    const pid_t child = fork();
    if (child != 0) {
      int status = 1;
      waitpid(child, &status, 0);
      if (!cgroup.empty() && rmdir(cgroup.c_str()) != 0) perror("rmdir"), status = 1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    if (!cgroup.empty()) std::ofstream(cgroup + "/cgroup.procs") << "0";
    if (setgroups(0, nullptr) != 0 || setgid(ordinary) != 0 || setuid(ordinary) != 0) return 1;
    prctl(PR_SET_DUMPABLE, 1);
  }
  if (sodium_init() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 1;
  setenv("HOME", "/home/test", 1);  // what commands are given
  std::printf("running as uid %u\n", geteuid());
  return doctest::Context(argc, argv).run();
}
