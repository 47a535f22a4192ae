// What x0x-bench can measure. Each part prints one JSON object of samples; bench.py makes ratios of them.
#pragma once

#include <span>
#include <string>

namespace x0x::bench {

using Arguments = std::span<char* const>;

int decide_part();
int load_part(const std::string& table, const std::string& trust, Arguments enforcer);
int session_part(const std::string& socket, const std::string& log);
int parallel_part(const std::string& socket);
int commands_part(int rounds, Arguments commands);

}  // namespace x0x::bench
