// What a command is given when it starts, and what becomes of a start that fails.
#include "enforcer/spawn.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/support/session.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

std::array<std::uint8_t, 32> digest_of(const std::string& path) {
  const std::string content = read_file(path);
  std::array<std::uint8_t, 32> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(content.data()), content.size());
  return digest;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& prefix) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, prefix.size(), prefix) == 0) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void check_fails(const ChildPlan& plan, SpawnStep step, int error) {
  RunningSession session(plan);
  session.finish();
  CHECK(session.failed == step);
  CHECK(session.error == error);
  CHECK(session.started == -1);
  CHECK_FALSE(session.exited);
  CHECK(session.gone);
  CHECK(session.out.empty());
}

}  // namespace

TEST_CASE("a command that ends is reported with its pid, status and end") {
  LeavesNothing watch;
  Plan plan({});
  plan.set_argv({"true"});
  RunningSession session(*plan);
  session.finish();
  CHECK(session.failed == SpawnStep::none);
  CHECK(session.started > 0);
  CHECK(session.exited);
  CHECK(session.gone);
  CHECK(session.status == 0);
  plan.set_argv({"sh", "-c", "cat; echo to-stderr >&2; exit 3"});
  plan->stdin_data = as_bytes("from stdin");
  RunningSession other(*plan);
  other.finish();
  CHECK(WEXITSTATUS(other.status) == 3);
  CHECK(other.out == "from stdin");
  CHECK(other.err == "to-stderr\n");
  plan.set_argv({"sh", "-c", "kill -9 $$"});
  RunningSession killed(*plan);
  killed.finish();
  CHECK(WTERMSIG(killed.status) == SIGKILL);
}

TEST_CASE("attack 8: nothing of the daemon's environment reaches the child") {
  LeavesNothing watch;
  const char* const hostile[] = {"LD_PRELOAD",      "LD_LIBRARY_PATH", "IFS",          "BASH_ENV",   "ENV",
                                 "PYTHONPATH",      "PERL5OPT",        "NODE_OPTIONS", "GCONV_PATH", "GIT_DIR",
                                 "GIT_SSH_COMMAND", "BASH_FUNC_x%%"};
  for (const char* name : hostile) setenv(name, "/nowhere/evil.so", 1);
  Plan plan({"state"});
  RunningSession session(*plan);
  session.finish();
  for (const char* name : hostile) unsetenv(name);
  CHECK(lines_with(session.out, "env ") ==
        std::vector<std::string>{"env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                 "env HOME=/home/test", "env LANG=C.UTF-8", "env LC_ALL=C.UTF-8"});
}

TEST_CASE("attack 9: descriptors, umask, signals and group of the daemon do not reach the child") {
  LeavesNothing watch;
  const int leak = open("/dev/null", O_RDONLY);  // not close-on-exec
  const int far = fcntl(leak, F_DUPFD, 700);
  const mode_t mask_before = umask(0);
  sigset_t blocked, before;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGALRM);
  sigprocmask(SIG_SETMASK, &blocked, &before);
  struct KernelAction {
    void (*handler)(int);
    unsigned long rest[3];
  };
  std::array<KernelAction, 65> saved{};
  const KernelAction ignore{SIG_IGN, {}};
  for (int n = 1; n <= 64; ++n)  // 32 and 33 too, which libc keeps to itself
    syscall(SYS_rt_sigaction, n, &ignore, &saved[static_cast<std::size_t>(n)], 8);
  reset_signals();

  Plan plan({"state"});
  {
    RunningSession session(*plan);
    session.finish();
    CHECK(lines_with(session.out, "fd ") == std::vector<std::string>{"fd 0", "fd 1", "fd 2"});
    CHECK(session.has_line("umask=27"));
    CHECK(session.has_line("SigBlk:\t0000000000000000"));
    CHECK(session.has_line("SigIgn:\t0000000000000000"));
    CHECK(session.has_line("SigCgt:\t0000000000000000"));
    CHECK(session.has_line("SigPnd:\t0000000000000000"));
    CHECK(session.value("own_session") == 1);
    CHECK(session.value("own_group") == 1);
    CHECK(session.value("no_new_privs") == 1);
    CHECK(session.value("no_tty") == ENXIO);
    CHECK(session.value("stdin_blocks") == 1);
    CHECK(session.value("stdout_blocks") == 1);
  }
  for (int n = 1; n <= 64; ++n) syscall(SYS_rt_sigaction, n, &saved[static_cast<std::size_t>(n)], nullptr, 8);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  umask(mask_before);
  close(far);
  close(leak);
}

TEST_CASE("attack 9: a controlling terminal of the daemon is not the child's") {
  LeavesNothing watch;
  const pid_t daemon = fork();
  if (daemon == 0) {
    setsid();
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(terminal);
    unlockpt(terminal);
    const int slave = open(ptsname(terminal), O_RDWR);
    if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) != 0 || open("/dev/tty", O_RDWR) < 0) _exit(10);  // it has one
    Plan plan({"state"});
    RunningSession session(*plan);
    session.finish();
    close_session(session.spawned);
    _exit(session.value("no_tty") == ENXIO ? 0 : 11);
  }
  int status = -1;
  waitpid(daemon, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("cwd is the plan's, or the daemon's when there is none") {
  LeavesNothing watch;
  const std::string directory = temporary_directory();
  Plan plan({"state"});
  plan.rule.cwd = directory;
  RunningSession session(*plan);
  session.finish();
  CHECK(session.has_line("cwd=" + directory));
  plan.rule.cwd.reset();
  RunningSession inherited(*plan);
  inherited.finish();
  CHECK(inherited.has_line("cwd=" + std::filesystem::current_path().string()));
  remove_tree(directory);
}

TEST_CASE("argv reaches the program byte for byte") {
  LeavesNothing watch;
  const std::vector<std::string> argv = {"a name that is not the file",
                                         "state",
                                         "",
                                         " two  spaces ",
                                         "\"'\\",
                                         "*?[a]~",
                                         "grüße \xe2\x80\xae",
                                         "\xff\xfe",
                                         "-n",
                                         "--",
                                         "tab\tand\rreturn",
                                         ""};
  Plan plan({});
  plan.set_argv(argv);
  const std::string probe = probe_path();
  plan.rule.exe = probe;  // `exe`: the file is another than argv[0] says
  RunningSession session(*plan);
  session.finish();
  std::string expected;
  for (const std::string& one : argv) expected += "arg " + std::to_string(one.size()) + ":" + one + "\n";
  CHECK(session.out.starts_with(expected));
}

TEST_CASE("attack 4: a bare name is found in the fixed PATH only, and a path must be absolute") {
  LeavesNothing watch;
  const std::string directory = temporary_directory();
  std::filesystem::copy_file(probe_path(), directory + "/x0x-lonely-program");
  const std::filesystem::path back = std::filesystem::current_path();
  const std::string path_before = getenv("PATH");
  setenv("PATH", directory.c_str(), 1);
  std::filesystem::current_path(directory);
  Plan plan({});
  const auto fails = [&](const std::string& name, int error) {
    CAPTURE(name);
    plan.set_argv({name, "state"});
    check_fails(*plan, SpawnStep::open_exe, error);
  };
  fails("x0x-lonely-program", ENOENT);
  fails("./x0x-lonely-program", EINVAL);
  fails("", EINVAL);
  fails("true ", ENOENT);
  fails("../bin/true", EINVAL);
  fails(directory + "/missing", ENOENT);
  fails(std::string(255, 'n'), ENOENT);
  fails(std::string(5000, 'n'), ENAMETOOLONG);
  write_file(directory + "/text", "#!/bin/sh\necho ran\n", 0644);
  fails(directory + "/text", EACCES);
  REQUIRE(mkfifo((directory + "/pipe").c_str(), 0755) == 0);
  for (const std::string& no_file : {directory, directory + "/pipe"}) {
    plan.set_argv({no_file, "state"});
    check_fails(*plan, SpawnStep::exec, EACCES);
  }
  plan.set_argv({directory + "/x0x-lonely-program", "state"});
  RunningSession session(*plan);
  session.finish();
  CHECK(session.status == 0);
  setenv("PATH", path_before.c_str(), 1);
  std::filesystem::current_path(back);
  remove_tree(directory);
}

TEST_CASE("never a shell: a file without a known format fails at exec") {
  LeavesNothing watch;
  const std::string directory = temporary_directory();
  Plan plan({});
  write_file(directory + "/script", "echo ran\n", 0755);
  plan.set_argv({directory + "/script"});
  check_fails(*plan, SpawnStep::exec, ENOEXEC);
  write_file(directory + "/orphan", "#!/nowhere/interpreter\n", 0755);
  plan.set_argv({directory + "/orphan"});
  check_fails(*plan, SpawnStep::exec, ENOENT);
  write_file(directory + "/good", "#!/bin/sh\necho ran \"$1\"\n", 0755);
  plan.set_argv({directory + "/good", "a  b"});
  RunningSession session(*plan);
  session.finish();
  CHECK(session.out == "ran a  b\n");
  remove_tree(directory);
}

TEST_CASE("a pinned file runs when its content matches, and not otherwise") {
  LeavesNothing watch;
  const std::string directory = temporary_directory(), file = directory + "/program";
  std::filesystem::copy_file(probe_path(), file);
  const auto digest = digest_of(file);
  Plan plan({});
  plan.set_argv({"shown-name", "state"});
  plan.rule.exe = file;
  plan.rule.sha256 = digest;
  {
    RunningSession session(*plan);
    session.finish();
    CHECK(session.status == 0);
    CHECK(session.out.starts_with("arg 10:shown-name\n"));
    CHECK(lines_with(session.out, "fd ").size() == 3);  // not the one it was run through
  }
  {
    Plan bare({});
    bare.set_argv({"true"});
    const auto of_true = digest_of("/usr/bin/true");
    bare.rule.sha256 = of_true;
    RunningSession session(*bare);
    session.finish();
    CHECK(session.status == 0);
  }
  for (const std::size_t byte : {0u, 15u, 31u}) {
    auto wrong = digest;
    wrong[byte] ^= 1;
    plan.rule.sha256 = wrong;
    check_fails(*plan, SpawnStep::digest, EBADMSG);
  }
  plan.rule.sha256 = digest;
  std::filesystem::remove(file);
  check_fails(*plan, SpawnStep::open_exe, ENOENT);
  write_file(file, "#!/bin/sh\necho evil\n", 0755);  // replaced after the plan was made
  check_fails(*plan, SpawnStep::digest, EBADMSG);
  const auto of_script = digest_of(file);
  plan.rule.sha256 = of_script;
  check_fails(*plan, SpawnStep::exec, ENOENT);  // a script cannot be read through a descriptor that closes
  remove_tree(directory);
}

TEST_CASE("attack 4: a file that is replaced all the time never runs with other content than was hashed") {
  LeavesNothing watch;
  const std::string directory = temporary_directory(), file = directory + "/program";
  std::filesystem::copy_file(probe_path(), directory + "/good");
  std::filesystem::copy_file("/bin/echo", directory + "/evil");  // it would print its argument
  const auto digest = digest_of(directory + "/good");
  std::filesystem::copy_file(directory + "/good", file);
  // A thread, because a child would be a stray to the session's end.
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    const std::string next = directory + "/next";
    while (!stop) {
      for (const char* which : {"/evil", "/good"})
        if (link((directory + which).c_str(), next.c_str()) == 0 && rename(next.c_str(), file.c_str()) == 0)
          usleep(200);
    }
  });
  Plan plan({});
  plan.set_argv({"program", "state"});
  plan.rule.exe = file;
  plan.rule.sha256 = digest;
  int ran = 0, refused = 0;
  for (int i = 0; i < 2000 && (i < 100 || ran == 0 || refused == 0); ++i) {
    RunningSession session(*plan);
    session.finish();
    if (session.failed == SpawnStep::none) {
      ++ran;
      REQUIRE(session.out.starts_with("arg 7:program\n"));
    } else {
      ++refused;
      REQUIRE(session.failed == SpawnStep::digest);
    }
  }
  stop = true;
  swapper.join();
  CHECK(ran > 0);
  CHECK(refused > 0);
  remove_tree(directory);
}

TEST_CASE("every step that fails has its own name, and the program does not run") {
  LeavesNothing watch;
  const std::string directory = temporary_directory(), mark = directory + "/ran";
  Plan plan({"touch", mark});
  SUBCASE("cwd is missing") {
    plan.rule.cwd = "/nowhere/at/all";
    check_fails(*plan, SpawnStep::cwd, ENOENT);
  }
  SUBCASE("cwd is a file") {
    plan.rule.cwd = "/etc/passwd";
    check_fails(*plan, SpawnStep::cwd, ENOTDIR);
  }
  SUBCASE("program is missing") {
    plan.rule.exe = "/nowhere/program";
    check_fails(*plan, SpawnStep::open_exe, ENOENT);
  }
  SUBCASE("writable path is missing") {
    plan.rule.writable = std::vector<std::string>{"/nowhere/at/all"};
    if (landlock_abi() >= kMinLandlockAbi) check_fails(*plan, SpawnStep::landlock, ENOENT);
  }
  SUBCASE("limit cannot be set") {
    plan.rule.limits.open_files = ~0ull >> 1;  // more open files than the kernel knows
    check_fails(*plan, SpawnStep::rlimits, EPERM);
  }
  SUBCASE("arguments are too long") {
    plan.set_argv({probe_path(), "touch", mark, std::string(200'000, 'x')});
    check_fails(*plan, SpawnStep::exec, E2BIG);
  }
  SUBCASE("no descriptors are left") {
    rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    const int next = dup(0);
    close(next);
    for (const rlim_t room : {0u, 1u, 2u, 4u, 6u}) {
      const rlimit tight{static_cast<rlim_t>(next) + room, before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &tight);
      Spawned spawned;
      const Progress begun = spawn(*plan, spawned);
      setrlimit(RLIMIT_NOFILE, &before);
      CHECK(begun.failed == SpawnStep::pipes);
      CHECK(begun.error == EMFILE);
      CHECK(spawned.supervisor == -1);
      CHECK(spawned.fds[kControl] == -1);
    }
  }
  SUBCASE("no process can be made for the supervisor") {
    if (geteuid() == 0) {
      MESSAGE("root is not bound by a limit on processes: shown as an ordinary user only");
    } else {
      rlimit before;
      getrlimit(RLIMIT_NPROC, &before);
      const rlimit none{0, before.rlim_max};
      setrlimit(RLIMIT_NPROC, &none);
      Spawned spawned;
      const Progress begun = spawn(*plan, spawned);
      setrlimit(RLIMIT_NPROC, &before);
      CHECK(begun.failed == SpawnStep::fork);
      CHECK(begun.error == EAGAIN);
    }
  }
  CHECK_FALSE(std::filesystem::exists(mark));
  remove_tree(directory);
}

TEST_CASE("step names are those of the steps") {
  CHECK(std::size(kSpawnStepNames) == static_cast<std::size_t>(SpawnStep::exec) + 1);
  CHECK(kSpawnStepNames[static_cast<std::size_t>(SpawnStep::digest)] == std::string("digest"));
  CHECK(kSpawnStepNames[static_cast<std::size_t>(SpawnStep::rlimits)] == std::string("rlimits"));
  CHECK(kSpawnStepNames[static_cast<std::size_t>(SpawnStep::exec)] == std::string("exec"));
}

TEST_CASE("the environment is the rule's, then what the rule leaves to us, however large it is") {
  LeavesNothing watch;
  const auto environment = [](Plan& plan) {
    RunningSession session(*plan);
    session.finish();
    CHECK(session.status == 0);
    return lines_with(session.out, "env ");
  };
  const std::vector<std::string> ours = {std::string("env PATH=") + kChildPath, "env HOME=/home/test",
                                         "env LANG=C.UTF-8", "env LC_ALL=C.UTF-8"};
  Plan plan({"state"});
  CHECK(environment(plan) == ours);
  plan.rule.env = {{"A", "1"}, {"HOMELY", "yes"}, {"LANG", "de_DE.UTF-8"}};
  CHECK(environment(plan) ==
        std::vector<std::string>{"env A=1", "env HOMELY=yes", "env LANG=de_DE.UTF-8", ours[0], ours[1], ours[3]});
  plan.rule.env = {{"HOME", "/elsewhere"}, {"LC_ALL", ""}, {"PATH", "/bin"}};
  CHECK(environment(plan) == std::vector<std::string>{"env HOME=/elsewhere", "env LC_ALL=", "env PATH=/bin", ours[2]});
  plan.rule.env.clear();
  for (int i = 0; i < 3000; ++i) plan.rule.env.push_back({"V" + std::to_string(1000 + i), "x"});
  CHECK(environment(plan).size() == 3004);
  plan.rule.env.assign(1, {"LARGE", std::string(200'000, 'x')});
  check_fails(*plan, SpawnStep::exec, E2BIG);
}

TEST_CASE("a supervisor's next command has nothing of the environment of the one before") {
  LeavesNothing watch;
  // One table with both rules, because a supervisor has the table of its first session.
  policyc::Policy source = policy({entry(1, 1, {{"first"}, {"second"}})});
  source.entries[0].commands[0].env = {{"HOME", "/first"}, {"SECRET", "1"}};
  const OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);
  Plan plan({"state"});
  plan->table = &table.view;
  Spawned idle;
  for (const std::uint32_t rule : {0u, 1u}) {
    plan->rule = rule;
    RunningSession session(plan.plan, idle);
    session.finish();
    CHECK(session.has_line("env SECRET=1") == (rule == 0));
    CHECK(session.has_line("env HOME=/home/test") == (rule == 1));
    idle = session.take_idle();
  }
  close_session(idle);
}

TEST_CASE("the cwd of a rule goes before that of the policy") {
  LeavesNothing watch;
  Plan plan({"state"});
  plan.default_cwd = "/var";
  {
    RunningSession session(*plan);
    session.finish();
    CHECK(session.has_line("cwd=/var"));
  }
  plan.rule.cwd = "/usr";
  RunningSession session(*plan);
  session.finish();
  CHECK(session.has_line("cwd=/usr"));
}
