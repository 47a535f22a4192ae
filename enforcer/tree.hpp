// Finds and signals every descendant of this process, whatever session or group it moved to.
//
// This process must be a child subreaper, so that nothing can leave the tree. A process is stopped before its
// children are read: it can neither fork behind our back nor react to their end, and only then gets the
// signal. A process number is never trusted: the signal goes through the /proc directory that was open when
// the parent was checked. Shown by tests/enforcer/tree_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace x0x {

inline constexpr int kMaxTreeDepth = 128;  // deeper ones come nearer when those above them are killed

// Children in `spare` and all below them are left alone. Returns how many direct children were reached; the
// dead that wait to be reaped count too.
int signal_descendants(int signal, std::span<const pid_t> spare = {});

// The cgroup of a session, made if need be, or -1. cgroup.kill ends all that is in it at once.
int open_session_cgroup(int delegated, std::uint32_t slot);

}  // namespace x0x
