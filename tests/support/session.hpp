// Runs a plan the way the enforcer does and collects everything that comes of it; and a watch over the test
// itself, which must leave no process and no descriptor behind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "enforcer/spawn.hpp"
#include "tests/support/table.hpp"

namespace x0x::test {

// A plan that owns its strings and its table, whose only rule says what `rule` says; the probe unless told otherwise.
struct Plan {
  explicit Plan(std::vector<std::string> probe_arguments);
  ChildPlan& operator*();  // with a table that says what the rule says now
  ChildPlan* operator->() { return &plan; }
  void set_argv(std::vector<std::string> all);

  ChildPlan plan;
  policyc::Command rule;  // its argv does not matter
  std::optional<std::string> default_cwd;

 private:
  std::string argv_block_;
  OpenTable table_;  // stays where it is: idle supervisors have it too
};

class RunningSession {
 public:
  explicit RunningSession(const ChildPlan& plan, const Spawned& idle = {});  // with the supervisor of another
  ~RunningSession();
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;

  void go_on();                                 // the word that the probe waits for
  void wait_for(const std::string& in_stdout);  // until it has been written
  void wait_started();
  void step_once();                           // until anything happens
  void finish();                              // until `gone`, or the end without it
  Spawned take_idle();                        // after `gone`: its supervisor may serve another session
  long value(const std::string& name) const;  // of the line "name=value" on stdout; -1: no such line
  bool has_line(const std::string& line) const;
  std::vector<pid_t> pids() const;  // of all lines "pid=N" and "main=N"

  Spawned spawned;
  SpawnStep failed = SpawnStep::none;
  int error = 0;
  pid_t started = -1;
  bool exited = false, gone = false, ended = false;
  int status = -1;
  std::string out, err;
};

std::string probe_path();
bool alive(pid_t pid);
long count_alive(const std::vector<pid_t>& pids);
std::string temporary_directory();
void remove_tree(const std::string& path);
void write_file(const std::string& path, const std::string& content, unsigned mode = 0644);
std::string read_file(const std::string& path);

// At its end: the same descriptors as at its start, and no child.
class LeavesNothing {
 public:
  LeavesNothing();
  ~LeavesNothing();

 private:
  std::vector<std::string> before_;
};

}  // namespace x0x::test
