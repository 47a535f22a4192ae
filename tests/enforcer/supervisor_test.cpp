// Nothing of a session is alive after `gone`, whatever it does; and nothing survives the enforcer.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <utility>

#include "enforcer/spawn.hpp"
#include "tests/support/session.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

constexpr std::size_t kTreeSize = 8;  // the probe's tree

// Runs a test case with the walk over /proc alone, and again inside a cgroup where there is one.
struct BothWays {
  int delegated = -1;
  explicit BothWays(bool with_cgroup) {
    if (!with_cgroup) return;
    delegated = find_delegated_cgroup();
    if (delegated < 0) MESSAGE("no delegated cgroup here: only the walk was shown");
    remove_session_cgroups(delegated);  // of enforcers that were killed
  }
  static std::string name(const Spawned& session) {
    return "x0x-" + std::to_string(getpid()) + "-" + std::to_string(session.fds[kControl]);
  }
  std::vector<std::string> left() const {  // of all enforcers
    std::vector<std::string> names;
    for (const auto& group : std::filesystem::directory_iterator("/proc/self/fd/" + std::to_string(delegated)))
      if (const std::string own = group.path().filename().string(); own.starts_with("x0x-")) names.push_back(own);
    return names;
  }
  ~BothWays() {
    if (delegated < 0) return;
    remove_session_cgroups(delegated);
    for (const std::string& name : left()) CHECK_FALSE(name.starts_with("x0x-" + std::to_string(getpid()) + "-"));
    close(delegated);
  }
};

void wait_for_tree(RunningSession& session) {
  while (session.pids().size() < kTreeSize) {
    REQUIRE_FALSE(session.ended);
    session.step_once();
  }
}

std::string cgroup_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "";
}

}  // namespace

TEST_CASE("attack 10: a tree that hides and ignores SIGTERM is killed to the last") {
  for (const bool with_cgroup : {false, true}) {
    LeavesNothing watch;
    BothWays ways(with_cgroup);
    if (with_cgroup && ways.delegated < 0) continue;
    CAPTURE(with_cgroup);
    Plan plan({"tree", "stay"});
    plan->delegated = ways.delegated;
    RunningSession session(*plan);
    wait_for_tree(session);
    const auto pids = session.pids();
    CHECK(count_alive(pids) == kTreeSize);
    CHECK(cgroup_of(pids[0]).ends_with("/" + BothWays::name(session.spawned)) == with_cgroup);
    signal_session(session.spawned, SessionSignal::terminate);  // all of them ignore it
    signal_session(session.spawned, SessionSignal::kill);
    session.finish();
    CHECK(session.gone);
    CHECK(session.exited);
    CHECK(WTERMSIG(session.status) == SIGKILL);
    CHECK(count_alive(pids) == 0);
  }
}

TEST_CASE("attack 10: leftovers that hold stdout open are killed when the command ends") {
  for (const bool with_cgroup : {false, true}) {
    LeavesNothing watch;
    BothWays ways(with_cgroup);
    if (with_cgroup && ways.delegated < 0) continue;
    CAPTURE(with_cgroup);
    Plan plan({"tree", "exit"});
    plan->delegated = ways.delegated;
    RunningSession session(*plan);
    wait_for_tree(session);
    const auto pids = session.pids();
    session.go_on();
    session.finish();
    CHECK(WEXITSTATUS(session.status) == 7);
    CHECK(session.gone);
    CHECK(count_alive(pids) == 0);
  }
}

TEST_CASE("a tree that keeps growing while it is hunted is killed to the last") {
  for (const bool with_cgroup : {false, true}) {
    LeavesNothing watch;
    BothWays ways(with_cgroup);
    if (with_cgroup && ways.delegated < 0) continue;
    CAPTURE(with_cgroup);
    Plan plan({"breed"});
    plan->delegated = ways.delegated;
    if (geteuid() != 0) plan.rule.limits.processes = 300;
    RunningSession session(*plan);
    session.wait_for("main=");
    poll(nullptr, 0, 20);  // let it grow a little
    signal_session(session.spawned, SessionSignal::kill);
    session.finish();
    CHECK(session.gone);
  }
}

TEST_CASE("SIGTERM reaches every process once, and a handler runs") {
  LeavesNothing watch;
  Plan plan({"polite"});
  RunningSession session(*plan);
  session.wait_for("child=");
  session.wait_for("main=");
  signal_session(session.spawned, SessionSignal::terminate);
  session.finish();
  CHECK(WEXITSTATUS(session.status) == 9);
  CHECK(session.out.find("term\nterm\n") != std::string::npos);
  CHECK(session.gone);
}

TEST_CASE("a shell does not go on to its next command between the signals") {
  LeavesNothing watch;
  Plan plan({});
  plan.set_argv({"sh", "-c", "echo ready; sleep 1000; echo next"});
  for (int i = 0; i < 20; ++i) {
    RunningSession session(*plan);
    session.wait_for("ready");
    signal_session(session.spawned, SessionSignal::terminate);
    session.finish();
    CHECK(session.out == "ready\n");
    CHECK(WTERMSIG(session.status) == SIGTERM);
  }
}

TEST_CASE("a deep chain is killed to the last") {
  LeavesNothing watch;
  Plan plan({"chain", "300"});
  RunningSession session(*plan);
  while (session.pids().size() < 301) session.step_once();
  const auto pids = session.pids();
  signal_session(session.spawned, SessionSignal::kill);
  session.finish();
  CHECK(session.gone);
  CHECK(count_alive(pids) == 0);
}

TEST_CASE("a command cannot disturb its supervisor with any signal that can be blocked") {
  LeavesNothing watch;
  Plan plan({"annoy-supervisor"});
  RunningSession session(*plan);
  session.wait_for("done");
  session.go_on();
  session.finish();
  CHECK(WEXITSTATUS(session.status) == 3);
  CHECK(session.gone);
}

TEST_CASE("a supervisor that its command has stopped still kills") {
  LeavesNothing watch;
  Plan plan({"stop-supervisor"});
  RunningSession session(*plan);
  session.wait_for("main=");
  signal_session(session.spawned, SessionSignal::kill);
  session.finish();
  CHECK(session.gone);
}

TEST_CASE("an abandoned session ends without `gone` and its processes are strays") {
  LeavesNothing watch;
  Plan plan({"tree", "stay"}), other({"stay"});
  RunningSession bystander(*other);
  bystander.wait_for("main=");
  {
    RunningSession session(*plan);
    wait_for_tree(session);
    const auto pids = session.pids();
    signal_session(session.spawned, SessionSignal::abandon);
    session.finish();
    CHECK_FALSE(session.gone);
    const pid_t spare[] = {bystander.spawned.supervisor};
    close_session(session.spawned);
    while (reap_strays(spare) != 0) poll(nullptr, 0, 1);
    CHECK(count_alive(pids) == 0);
  }
  CHECK(alive(static_cast<pid_t>(bystander.value("main"))));
  signal_session(bystander.spawned, SessionSignal::terminate);
  bystander.finish();
  CHECK(bystander.gone);
  CHECK(WTERMSIG(bystander.status) == SIGTERM);
}

TEST_CASE("a command that kills its supervisor leaves strays that the enforcer kills") {
  LeavesNothing watch;
  Plan plan({"tree", "kill-supervisor"});
  RunningSession session(*plan);
  wait_for_tree(session);
  const auto pids = session.pids();
  session.go_on();
  session.finish();
  CHECK_FALSE(session.gone);
  CHECK(count_alive(pids) >= kTreeSize - 1);  // the command itself goes with its supervisor
  close_session(session.spawned);
  while (reap_strays({}) != 0) poll(nullptr, 0, 1);
  CHECK(count_alive(pids) == 0);
}

TEST_CASE("nothing survives an enforcer that is killed") {
  for (const bool with_cgroup : {false, true}) {
    LeavesNothing watch;
    BothWays ways(with_cgroup);
    if (with_cgroup && ways.delegated < 0) continue;
    CAPTURE(with_cgroup);
    int report[2];
    REQUIRE(pipe2(report, O_CLOEXEC) == 0);
    const pid_t enforcer = fork();
    if (enforcer == 0) {
      prctl(PR_SET_CHILD_SUBREAPER, 1);
      Plan plan({"tree", "stay"});
      plan->delegated = ways.delegated;
      RunningSession session(*plan);
      wait_for_tree(session);
      auto pids = session.pids();
      pids.push_back(session.spawned.supervisor);
      if (write(report[1], pids.data(), pids.size() * sizeof(pid_t)) < 0) _exit(1);
      for (;;) pause();
    }
    pid_t pids[kTreeSize + 1];
    REQUIRE(read(report[0], pids, sizeof pids) == sizeof pids);
    kill(enforcer, SIGKILL);
    waitpid(enforcer, nullptr, 0);
    // We are the nearest subreaper: the supervisor is ours now. It ends when all are dead.
    int status = -1;
    REQUIRE(waitpid(pids[kTreeSize], &status, 0) == pids[kTreeSize]);
    CHECK(status == 0);
    CHECK(count_alive({pids, pids + kTreeSize}) == 0);
    if (with_cgroup) remove_session_cgroups(ways.delegated);
    if (with_cgroup)
      for (const std::string& name : ways.left())
        CHECK_FALSE(name.starts_with("x0x-" + std::to_string(enforcer) + "-"));
    close(report[0]);
    close(report[1]);
  }
}

TEST_CASE("nothing survives an enforcer that is killed while the supervisor is stopped") {
  LeavesNothing watch;
  int report[2];
  REQUIRE(pipe2(report, O_CLOEXEC) == 0);
  const pid_t enforcer = fork();
  if (enforcer == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    Plan plan({"stop-supervisor"});
    RunningSession session(*plan);
    session.wait_for("main=");
    const pid_t pids[] = {session.spawned.supervisor, session.pids().at(0)};
    if (write(report[1], pids, sizeof pids) < 0) _exit(1);
    for (;;) pause();
  }
  pid_t pids[2];
  REQUIRE(read(report[0], pids, sizeof pids) == sizeof pids);
  kill(enforcer, SIGKILL);
  waitpid(enforcer, nullptr, 0);
  REQUIRE(waitpid(pids[0], nullptr, 0) == pids[0]);
  CHECK_FALSE(alive(pids[1]));
  close(report[0]);
  close(report[1]);
}

TEST_CASE("a supervisor holds no descriptor of another session") {
  LeavesNothing watch;
  Plan writer({}), other({"stay"});
  writer.set_argv({"yes"});
  RunningSession yes(*writer);
  RunningSession later(*other);  // forked while the enforcer held the end that yes writes to
  later.wait_for("main=");
  for (const int i : {0, 1}) close(std::exchange(yes.spawned.fds[i], -1));
  yes.finish();  // nobody can read what it writes although `later` lives on
  CHECK(WTERMSIG(yes.status) == SIGPIPE);
}

TEST_CASE("an order that crosses the end of a session does not hide its events") {
  LeavesNothing watch;
  Plan plan({});
  plan.set_argv({"sh", "-c", "exit 5"});
  for (int i = 0; i < 50; ++i) {
    RunningSession session(*plan);
    session.wait_started();
    for (int n = 0; n < 3; ++n) signal_session(session.spawned, SessionSignal::terminate);
    while (alive(session.started)) poll(nullptr, 0, 1);
    signal_session(session.spawned, SessionSignal::kill);
    session.finish();
    CHECK(session.exited);
    CHECK(session.gone);
  }
}

TEST_CASE("a signal to a session that is closed goes to nobody") {
  LeavesNothing watch;
  const pid_t bystander = fork();
  if (bystander == 0) {
    raise(SIGSTOP);
    for (;;) pause();
  }
  int status = 0;
  REQUIRE(waitpid(bystander, &status, WUNTRACED) == bystander);
  REQUIRE(WIFSTOPPED(status));
  signal_session(Spawned{}, SessionSignal::terminate);
  signal_session(Spawned{}, SessionSignal::kill);
  CHECK(waitpid(bystander, &status, WCONTINUED | WNOHANG) == 0);  // still stopped
  kill(bystander, SIGKILL);
  waitpid(bystander, nullptr, 0);
}

TEST_CASE("every supervisor has a cgroup of its own, and a new one in the place of one that was killed") {
  LeavesNothing watch;
  BothWays ways(true);
  if (ways.delegated < 0) return;
  Plan quiet({}), busy({"stay"});
  quiet.set_argv({"true"});
  quiet->delegated = busy->delegated = ways.delegated;
  const auto number = [&ways](const RunningSession& session) {
    struct stat info {};
    CHECK(fstatat(ways.delegated, BothWays::name(session.spawned).c_str(), &info, 0) == 0);
    return info.st_ino;
  };
  std::set<ino_t> numbers;
  for (int i = 0; i < 3; ++i) {
    for (int run = 0; run < 2; ++run) {
      RunningSession session(*quiet);
      session.finish();
      CHECK(session.status == 0);
      CHECK(numbers.insert(number(session)).second);
    }
    RunningSession session(*busy), other(*busy);
    session.wait_for("main=");
    CHECK(numbers.insert(number(session)).second);
    CHECK(numbers.insert(number(other)).second);
    signal_session(session.spawned, SessionSignal::kill);
    session.finish();
    CHECK(session.gone);
  }
}

TEST_CASE("many sessions at once") {
  LeavesNothing watch;
  Plan plan({"tree", "exit"});
  std::vector<std::unique_ptr<RunningSession>> sessions;
  for (int i = 0; i < 12; ++i) sessions.push_back(std::make_unique<RunningSession>(*plan));
  std::vector<pid_t> pids;
  for (auto& session : sessions) {
    wait_for_tree(*session);
    for (const pid_t pid : session->pids()) pids.push_back(pid);
  }
  for (auto& session : sessions) session->go_on();
  for (auto& session : sessions) session->finish();
  CHECK(count_alive(pids) == 0);
}

TEST_CASE("a supervisor that never had to kill serves one session after the other") {
  for (const bool with_cgroup : {false, true}) {
    LeavesNothing watch;
    BothWays ways(with_cgroup);
    Spawned idle;
    pid_t first = -1;
    Plan plan({});
    for (const char* word : {"one", "two", "three"}) {
      plan.set_argv({"sh", "-c", std::string("cat; echo ") + word + "; ls /proc/self/fd | wc -l; exit 4"});
      plan->stdin_data = as_bytes("given ");
      plan->delegated = ways.delegated;
      RunningSession session(*plan, idle);
      if (first < 0) first = session.spawned.supervisor;
      CHECK(session.spawned.supervisor == first);
      session.finish();
      CHECK(session.out == std::string("given ") + word + "\n4\n");  // 0-2 and the directory itself
      CHECK(WEXITSTATUS(session.status) == 4);
      idle = session.take_idle();
      signal_session(idle, SessionSignal::kill);  // crosses the end: it is not the next session's
    }
    close_session(idle);
  }
}

TEST_CASE("a plan that an idle supervisor cannot take gets another supervisor") {
  LeavesNothing watch;
  Plan plan({});
  const auto idle = [&] {
    plan.set_argv({"true"});
    RunningSession session(*plan);
    session.finish();
    return session.take_idle();
  };
  const auto takes = [&](const std::vector<std::string>& argv, const Spawned& from) {
    plan.set_argv(argv);
    RunningSession session(*plan, from);
    session.finish();
    CHECK(session.status == 0);
    return session.spawned.supervisor == from.supervisor;
  };
  CHECK(takes({"true", std::string(kMaxHandedOver - 6, 'x')}, idle()));
  CHECK_FALSE(takes({"true", std::string(kMaxHandedOver - 5, 'x')}, idle()));
  Spawned lost = idle();
  kill(lost.supervisor, SIGKILL);
  waitid(P_PID, static_cast<id_t>(lost.supervisor), nullptr, WEXITED | WNOWAIT);
  CHECK_FALSE(takes({"true"}, lost));
  Spawned stopped = idle();
  kill(stopped.supervisor, SIGSTOP);
  CHECK(takes({"true"}, stopped));
}
