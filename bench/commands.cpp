// Whole programs side by side, in turn: what a user waits for, and what the processor did for it.
//
//   x0x-bench commands ROUNDS NAME PROGRAM [ARGUMENT …] [::: NAME PROGRAM [ARGUMENT …]] …
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "bench/clock.hpp"
#include "bench/parts.hpp"
#include "bench/series.hpp"

namespace x0x::bench {

namespace {

struct Program {
  std::string name;
  std::vector<char*> argv;
};

std::vector<Program> split(Arguments words) {
  std::vector<Program> programs(1);
  for (char* const word : words) {
    if (std::strcmp(word, ":::") == 0)
      programs.emplace_back();
    else if (programs.back().name.empty())
      programs.back().name = word;
    else
      programs.back().argv.push_back(word);
  }
  for (Program& program : programs) {
    if (program.argv.empty()) throw std::runtime_error("no program to run");
    program.argv.push_back(nullptr);
  }
  return programs;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
}

struct Taken {
  double wall, cpu;
};

Taken run(const Program& program, const posix_spawn_file_actions_t& quiet) {
  pid_t pid = 0;
  const std::int64_t start = wall_ns();
  if (::posix_spawnp(&pid, program.argv[0], &quiet, nullptr, program.argv.data(), environ) != 0)
    throw std::runtime_error("cannot run " + program.name);
  int status = 0;
  rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  const double taken = static_cast<double>(wall_ns() - start);
  if (status != 0) throw std::runtime_error(program.name + " failed");
  return {taken, seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace

int commands_part(int rounds, Arguments words) {
  const std::vector<Program> programs = split(words);
  posix_spawn_file_actions_t quiet;
  ::posix_spawn_file_actions_init(&quiet);
  ::posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  Series series;
  for (int round = -1; round < rounds; ++round) {
    for (const Program& program : programs) {
      const Taken taken = run(program, quiet);
      if (round < 0) continue;
      series.add(program.name, taken.wall);
      series.add(program.name + " cpu", taken.cpu);
    }
  }
  ::posix_spawn_file_actions_destroy(&quiet);
  series.print();
  return 0;
}

}  // namespace x0x::bench
