// Two clocks, in nanoseconds. What a processor is busy with alone is timed by its own clock, so that others' work is
// not counted; what waits for a disk, a process or a peer by the clock on the wall.
#pragma once

#include <cstdint>
#include <ctime>

namespace x0x::bench {

inline std::int64_t nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t cpu_ns() { return nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }
inline std::int64_t wall_ns() { return nanoseconds(CLOCK_MONOTONIC); }

}  // namespace x0x::bench
