// A small valid payload for tests that are about what surrounds it.
#pragma once

#include <cstdint>
#include <vector>

#include "policyc/emit.hpp"
#include "tests/support/table.hpp"

namespace x0x::policyc {

inline Policy sample_policy(std::uint64_t version = 42) {
  Policy policy = test::policy({test::entry(0xaa, 0xbb, {{"uptime"}, {"df", "-h"}})});
  policy.name = "edge";
  policy.version = version;
  return policy;
}

inline std::vector<std::uint8_t> sample_payload(std::uint64_t version = 42) { return emit(sample_policy(version)); }

}  // namespace x0x::policyc
