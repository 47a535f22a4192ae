// A small valid payload for tests that are about what surrounds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policyc/emit.hpp"

namespace x0x::policyc {

inline Policy sample_policy(std::uint64_t version = 42) {
  Policy policy;
  policy.name = "edge";
  policy.version = version;
  policy.exec.enabled = true;
  Entry& entry = policy.entries.emplace_back();
  entry.agent.fill(0xaa);
  entry.machine.fill(0xbb);
  for (const char* word : {"uptime", "df"}) entry.commands.emplace_back().argv.emplace_back().text = word;
  return policy;
}

inline std::vector<std::uint8_t> sample_payload(std::uint64_t version = 42) {
  return emit(sample_policy(version));
}

}  // namespace x0x::policyc
