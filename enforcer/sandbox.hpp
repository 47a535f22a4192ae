// What a rule takes away from its command: resources, places to write, the network.
//
// Each function works on the calling process for good, says false with errno when the kernel cannot do all of
// it, and leaves it to the caller not to go on. Shown by tests/enforcer/sandbox_test.cpp.
#pragma once

#include "enforcer/spawn.hpp"

namespace x0x {

bool limit_resources(const std::uint64_t* limits);  // ChildPlan::limits; and never a core file

// Landlock: only these paths, what is below them, and /dev/null can be written; reading and executing stay as
// they are. Mode, owner, times and extended attributes of a file are not writes to Landlock: permissions
// guard those. A path that ends in a symbolic link is refused, because whoever may replace it would choose
// what is writable.
bool limit_writes(const char* const* paths);

// seccomp: no socket but AF_UNIX, by no way in: neither io_uring, nor another process's descriptors, nor the
// 32-bit and x32 system calls (whose use ends the process).
bool limit_network();

}  // namespace x0x
