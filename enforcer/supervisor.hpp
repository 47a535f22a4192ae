// The process between the enforcer and a command: starts it, holds all it starts, and never lets go.
//
// It is a fork of the enforcer and runs no program of its own. Every orphan of the session becomes its child,
// so the session is over exactly when it has no child left. When the enforcer dies, the control socket ends
// and it kills everything. The command may send it any signal: all are blocked; SIGKILL and SIGSTOP, which
// cannot be, are the enforcer's business (reap_strays, SessionSignal). Shown by
// tests/enforcer/supervisor_test.cpp.
#pragma once

#include "enforcer/spawn.hpp"

namespace x0x {

// Its descriptors: 0-2 become the command's; the cgroup it was started in may be missing.
inline constexpr int kControl = 3, kCgroup = 4;
[[noreturn]] void supervise(const ChildPlan& plan);

}  // namespace x0x
