// x0x-bench: takes the samples that must be taken inside a process, or without one in between. bench.py is what people
// run.
#include <signal.h>
#include <sodium.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "bench/parts.hpp"

namespace {

int part(std::string_view word, x0x::bench::Arguments rest) {
  using namespace x0x::bench;
  const std::size_t count = rest.size();
  if (word == "decide" && count == 0) return decide_part();
  if (word == "load" && count > 2) return load_part(rest[0], rest[1], {rest.data() + 2, count - 2});
  if (word == "session" && count == 2) return session_part(rest[0], rest[1]);
  if (word == "parallel" && count == 1) return parallel_part(rest[0]);
  if (word == "commands" && count > 2) return commands_part(std::atoi(rest[0]), rest.subspan(1));
  std::fputs("x0x-bench is run by bench.py\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (sodium_init() < 0 || argc < 2) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return part(argv[1], {argv + 2, static_cast<std::size_t>(argc - 2)});
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "x0x-bench: %s\n", failure.what());
    return 2;
  }
}
