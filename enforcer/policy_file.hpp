// From a path to a table that may be used on this node now, or to the one fault that forbids it.
//
// A file counts only if root or we ourselves own it and nobody else can write it; it is copied into read-only memory
// first, so it cannot change between the check and the use. Versions only ever go up. Shown by
// tests/enforcer/policy_file_test.cpp, one case per fault.
#pragma once

#include "enforcer/blob_view.hpp"
#include "enforcer/system.hpp"

namespace x0x {

inline constexpr std::uint64_t kEarliestClock = 1577836800;  // 2020-01-01: a clock before that is not set

// Who, when and where: everything about a policy that is not in its bytes.
struct Node {
  const char *policy_path, *trust_path, *state_dir;
  const char* name = "";  // matched against the policy's audience
  std::uint64_t now_secs = static_cast<std::uint64_t>(time(nullptr));
  bool record = true;  // false: check that the version could be recorded
};

struct Policy {
  const char* blamed = nullptr;  // the path that the fault belongs to
  Fault fault = Fault::none;
  BlobView table = {};  // after a fault an empty one, which allows nothing
  Digest digest = {};
};
Policy load_policy(const Node& node);

}  // namespace x0x
