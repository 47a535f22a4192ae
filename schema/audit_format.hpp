// Words of the audit log that are no part of the frames. They are on disk: a name never changes its meaning.
#pragma once

#include <cstdint>

namespace x0x {

// What a `denial` for spawn_failed gives as its `step`, in the order in which the steps happen.
enum class SpawnStep : std::uint8_t {
  none,
  environment,
  pipes,
  fork,
  session,
  cwd,
  open_exe,
  digest,
  no_new_privs,
  landlock,
  network,
  rlimits,
  exec,
};
inline constexpr const char* kSpawnStepNames[] = {
    "none",   "environment",  "pipes",    "fork",    "session", "cwd",  "open_exe",
    "digest", "no_new_privs", "landlock", "network", "rlimits", "exec",
};

}  // namespace x0x
