// Runs the x0x-policyc that was built with the tests and keeps what it prints. X0X_POLICYC names it.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/scratch.hpp"

namespace x0x::policyc {

struct Ran {
  int status = -1;
  std::string out, err;
};

inline Ran run_policyc(std::vector<std::string> arguments, const std::string& input = "",
                       const std::string& directory = "") {
  const char* program = std::getenv("X0X_POLICYC");
  if (program == nullptr) throw std::runtime_error("X0X_POLICYC is not set");
  const Scratch scratch;
  const std::string in = scratch.put("in", input), out = scratch.path("out"), err = scratch.path("err");
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
  if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  const int failed = posix_spawn(&child, program, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("cannot run x0x-policyc");
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, scratch.text("out"), scratch.text("err")};
}

}  // namespace x0x::policyc
