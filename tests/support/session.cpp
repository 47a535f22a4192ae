#include "tests/support/session.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace x0x::test {
namespace {

std::vector<pid_t> supervisors;  // of all sessions of this process

std::vector<std::string> open_descriptors() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone) all.push_back(entry.path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

void drain(int& fd, std::string& into) {
  char buffer[4096];
  ssize_t n;
  while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) >= 0) {
    into.append(buffer, static_cast<std::size_t>(n));
    if (n == 0) {
      close(fd);
      fd = -1;
    }
  }
}

}  // namespace

std::string probe_path() { return std::filesystem::absolute(X0X_PROBE).string(); }

Plan::Plan(std::vector<std::string> probe_arguments) : rule(command({"any"})) {
  probe_arguments.insert(probe_arguments.begin(), probe_path());
  set_argv(probe_arguments);
}

void Plan::set_argv(std::vector<std::string> all) {
  argv_block_.clear();
  for (const std::string& one : all) argv_block_.append(one).push_back('\0');
  plan.argv_block = as_bytes(argv_block_);
}

ChildPlan& Plan::operator*() {
  policyc::Policy source = policy({entry(1, 1, {})});
  source.entries[0].commands = {rule};
  source.exec.default_cwd = default_cwd;
  OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);
  if (table.file != table_.file) table_ = std::move(table);
  plan.table = &table_.view;
  return plan;
}

RunningSession::RunningSession(const ChildPlan& plan, const Spawned& idle) : spawned(idle) {
  const Progress begun = spawn(plan, spawned);
  failed = begun.failed;
  error = begun.error;
  ended = failed != SpawnStep::none;
  if (!ended) supervisors.push_back(spawned.supervisor);
}

RunningSession::~RunningSession() {
  if (!ended) {
    signal_session(spawned, SessionSignal::kill);
    finish();
  }
  std::erase(supervisors, spawned.supervisor);
  close_session(spawned);
  while (reap_strays(supervisors) != 0) poll(nullptr, 0, 1);
}

void RunningSession::step_once() {
  pollfd fds[] = {{spawned.fds[kControl], POLLIN, 0}, {spawned.fds[0], POLLIN, 0}, {spawned.fds[1], POLLIN, 0}};
  REQUIRE(poll(fds, 3, 60'000) > 0);
  drain(spawned.fds[0], out);
  drain(spawned.fds[1], err);
  if (fds[0].revents == 0) return;
  Progress now;
  const int n = read_progress(spawned, now);
  if (n == 0) ended = true;
  if (n <= 0) return;
  CHECK_FALSE(gone);  // nothing follows it
  CHECK((now.command > 0) == (now.failed == SpawnStep::none));
  if (now.command > 0) started = now.command;
  failed = now.failed;
  error = now.error;
  exited = now.status >= 0;
  status = now.status;
  gone = ended = now.gone;
}

void RunningSession::go_on() {
  wait_started();
  REQUIRE(kill(started, SIGUSR1) == 0);
}

Spawned RunningSession::take_idle() {
  REQUIRE(gone);  // and it stays among the supervisors, which no hunt of another session may touch
  close_session(spawned, true);
  return std::exchange(spawned, {});
}

void RunningSession::wait_for(const std::string& in_stdout) {
  while (out.find(in_stdout) == std::string::npos) {
    REQUIRE_FALSE(ended);
    step_once();
  }
}

void RunningSession::wait_started() {
  while (started < 0) {
    REQUIRE_FALSE(ended);
    step_once();
  }
}

void RunningSession::finish() {
  while (!ended) step_once();
  drain(spawned.fds[0], out);
  drain(spawned.fds[1], err);
}

bool RunningSession::has_line(const std::string& line) const {
  return ("\n" + out).find("\n" + line + "\n") != std::string::npos;
}

long RunningSession::value(const std::string& name) const {
  const std::string all = "\n" + out;
  const std::size_t at = all.find("\n" + name + "=");
  return at == std::string::npos ? -1 : std::atol(all.c_str() + at + name.size() + 2);
}

std::vector<pid_t> RunningSession::pids() const {
  std::vector<pid_t> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("pid=") || line.starts_with("main=") || line.starts_with("child="))
      all.push_back(std::atoi(line.c_str() + line.find('=') + 1));
  return all;
}

bool alive(pid_t pid) {
  REQUIRE(pid > 1);  // 0 and below would mean many
  return kill(pid, 0) == 0 || errno != ESRCH;
}

long count_alive(const std::vector<pid_t>& pids) { return std::count_if(pids.begin(), pids.end(), alive); }

std::string temporary_directory() {
  char path[] = "/tmp/x0x-test-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  return path;
}

void remove_tree(const std::string& path) { std::filesystem::remove_all(path); }

void write_file(const std::string& path, const std::string& content, unsigned mode) {
  std::ofstream(path, std::ios::binary) << content;
  REQUIRE(chmod(path.c_str(), mode) == 0);
}

std::string read_file(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

LeavesNothing::LeavesNothing() : before_(open_descriptors()) {}

LeavesNothing::~LeavesNothing() {
  CHECK(open_descriptors() == before_);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

}  // namespace x0x::test
