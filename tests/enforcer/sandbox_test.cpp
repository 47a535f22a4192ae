// What `network = false`, `writable` and `limits` take away, seen from inside.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "enforcer/spawn.hpp"
#include "tests/support/session.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

// A directory with something in it for every way of writing.
std::string furnished() {
  const std::string d = temporary_directory();
  for (const char* name : {"/file", "/file2", "/victim"}) write_file(d + name, "content");
  std::filesystem::create_directories(d + "/empty");
  std::filesystem::create_directories(d + "/from");
  write_file(d + "/from/moved", "content");
  return d;
}

constexpr const char* kWrites[] = {"create",  "write", "append", "truncate", "open_truncate", "mkdir",  "rmdir",
                                   "symlink", "link",  "fifo",   "rename",   "move",          "unlink", "bind"};
constexpr const char* kStays[] = {"list", "dev_null", "run"};

bool has_landlock() {
  if (landlock_abi() >= kMinLandlockAbi) return true;
  MESSAGE("this kernel's Landlock is too old: a rule with `writable` must fail to start");
  Plan plan({"state"});
  plan.rule.writable = std::vector<std::string>{};
  RunningSession session(*plan);
  session.finish();
  CHECK(session.failed == SpawnStep::landlock);
  CHECK(session.error != 0);
  return false;
}

void check_writes(const std::string& in, const std::vector<std::string>& writable, bool may_write) {
  Plan plan({"writes", in});
  plan.rule.writable = writable;
  RunningSession session(*plan);
  session.finish();
  REQUIRE(session.status == 0);
  for (const char* how : kWrites) {
    CAPTURE(how);
    if (may_write)
      CHECK(session.value(how) == 0);
    else
      CHECK((session.value(how) == EACCES || session.value(how) == EXDEV));
  }
  for (const char* how : kStays) {
    CAPTURE(how);
    CHECK(session.value(how) == 0);
  }
  CHECK(session.value("read") == 0);
}

}  // namespace

TEST_CASE("without `writable` every one of these writes works") {
  LeavesNothing watch;
  const std::string d = furnished();
  Plan plan({"writes", d});
  RunningSession session(*plan);
  session.finish();
  for (const char* how : kWrites) {
    CAPTURE(how);
    CHECK(session.value(how) == 0);
  }
  remove_tree(d);
}

TEST_CASE("with an empty `writable` nothing can be written but /dev/null") {
  LeavesNothing watch;
  if (!has_landlock()) return;
  const std::string d = furnished();
  check_writes(d, {}, false);
  CHECK(read_file(d + "/file") == "content");
  CHECK(read_file(d + "/victim") == "content");
  remove_tree(d);
}

TEST_CASE("`writable` opens a directory and what is below, and nothing beside it") {
  LeavesNothing watch;
  if (!has_landlock()) return;
  const std::string inside = furnished(), outside = furnished();
  check_writes(inside, {inside}, true);
  check_writes(outside, {inside, inside + "/from"}, false);
  CHECK(read_file(outside + "/file") == "content");
  remove_tree(inside);
  remove_tree(outside);
}

TEST_CASE("`writable` can name a single file") {
  LeavesNothing watch;
  if (!has_landlock()) return;
  const std::string d = furnished();
  Plan plan({"writes", d});
  plan.rule.writable = std::vector<std::string>{d + "/file"};
  RunningSession session(*plan);
  session.finish();
  CHECK(session.value("write") == 0);
  CHECK(session.value("truncate") == 0);
  CHECK(session.value("create") == EACCES);
  CHECK(session.value("unlink") == EACCES);
  remove_tree(d);
}

TEST_CASE("a writable path that is a symbolic link is refused") {
  LeavesNothing watch;
  if (!has_landlock()) return;
  const std::string d = furnished();
  std::filesystem::create_symlink("/etc", d + "/link");
  Plan plan({"state"});
  plan.rule.writable = std::vector<std::string>{d + "/link"};
  RunningSession session(*plan);
  session.finish();
  CHECK(session.failed == SpawnStep::landlock);
  CHECK(session.error == ELOOP);
  remove_tree(d);
}

TEST_CASE("without a network only AF_UNIX sockets can be made") {
  LeavesNothing watch;
  Plan plan({"network"});
  plan.rule.network = false;
  RunningSession session(*plan);
  session.finish();
  REQUIRE(session.status == 0);
  CHECK(session.value("socket1") == 0);        // AF_UNIX
  CHECK(session.value("socket2") == EACCES);   // AF_INET
  CHECK(session.value("socket10") == EACCES);  // AF_INET6
  CHECK(session.value("socket16") == EACCES);  // AF_NETLINK
  CHECK(session.value("socket17") == EACCES);  // AF_PACKET
  CHECK(session.value("socket40") == EACCES);  // AF_VSOCK
  CHECK(session.value("pair_unix") == 0);
  CHECK(session.value("pair_inet") == EACCES);
  CHECK(session.value("high_half") == EACCES);
  CHECK(session.value("io_uring") == EACCES);
  CHECK(session.value("pidfd_getfd") == EACCES);
}

TEST_CASE("with a network the same sockets can be made") {
  LeavesNothing watch;
  Plan plan({"network"});
  RunningSession session(*plan);
  session.finish();
  CHECK(session.value("socket2") == 0);
  CHECK(session.value("pair_unix") == 0);
  CHECK(session.value("high_half") == 0);
}

#if defined(__x86_64__)
TEST_CASE("without a network other system call tables end the process") {
  LeavesNothing watch;
  for (const char* way : {"call-32bit", "call-x32"}) {
    CAPTURE(way);
    Plan plan({way});
    plan.rule.network = false;
    RunningSession session(*plan);
    session.finish();
    CHECK(WIFSIGNALED(session.status));
    CHECK(WTERMSIG(session.status) == SIGSYS);
    CHECK(session.out.empty());
  }
}
#endif

TEST_CASE("every limit is what the rule says, and the others are inherited") {
  LeavesNothing watch;
  Plan plan({"limits"});
  {
    RunningSession session(*plan);
    session.finish();
    rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    CHECK(session.value("core_hard") == 0);
    CHECK(session.value("files_soft") == static_cast<long>(files.rlim_cur));
  }
  plan.rule.limits.cpu_secs = 11;
  plan.rule.limits.memory_bytes = 1u << 30;
  plan.rule.limits.file_bytes = 12345;
  plan.rule.limits.open_files = 17;
  plan.rule.limits.processes = 4000;
  RunningSession session(*plan);
  session.finish();
  for (const char* end : {"_soft", "_hard"}) {
    CHECK(session.value(std::string("core") + end) == 0);
    CHECK(session.value(std::string("cpu") + end) == 11);
    CHECK(session.value(std::string("as") + end) == 1 << 30);
    CHECK(session.value(std::string("fsize") + end) == 12345);
    CHECK(session.value(std::string("files") + end) == 17);
    CHECK(session.value(std::string("nproc") + end) == 4000);
  }
}

TEST_CASE("a limit of three open files leaves room for the start itself, with everything switched on") {
  LeavesNothing watch;
  if (!has_landlock()) return;
  Plan plan({"limits"});
  plan.rule.writable = std::vector<std::string>{"/tmp"};
  plan.rule.network = false;
  plan.rule.limits.open_files = 3;
  plan.set_argv({"true"});
  RunningSession session(*plan);
  session.finish();
  CHECK(session.failed == SpawnStep::none);
  CHECK(session.exited);
}

TEST_CASE("attack 10: a fork bomb stays within `processes`") {
  LeavesNothing watch;
  if (geteuid() == 0) {
    MESSAGE("root is not bound by a limit on processes: shown as an ordinary user only");
    return;
  }
  Plan plan({"bomb", "1000"});
  plan.rule.limits.processes = 25;
  RunningSession session(*plan);
  session.finish();
  CHECK(session.value("made") > 0);
  CHECK(session.value("made") < 25);
  CHECK(session.value("why") == EAGAIN);
  CHECK(session.gone);
}
