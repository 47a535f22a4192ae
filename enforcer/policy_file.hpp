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

// The content of a file, and a NUL after it, in read-only memory that is never given back.
Result<Bytes> read_file(const char* path, std::uint64_t max_bytes);

struct Policy {
  BlobView table;
  Digest digest;
};

// Who, when and where: everything about a policy that is not in its bytes.
struct Node {
  const char *policy_path, *trust_path, *state_dir;
  const char* name = "";         // matched against the policy's audience
  std::uint64_t now_secs = 0;    // Unix time
  bool record = true;            // false: check that the version could be recorded
  const char* blamed = nullptr;  // out: the path a fault belongs to
};
Result<Policy> load_policy(Node& node);

// Compares with the highest version ever loaded and records a higher one durably.
Fault check_version(const char* state_dir, std::uint64_t version, const Digest& digest, bool record);

}  // namespace x0x
