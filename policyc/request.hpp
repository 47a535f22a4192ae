// A request that owns its bytes, for the commands that ask the decider.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "enforcer/decide.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

struct OwnedRequest {
  std::array<std::uint8_t, 64> pair{};  // agent id, machine id
  std::vector<std::string> argv;
  bool cwd_present = false;
  std::uint64_t stdin_bytes = 0;
  std::uint32_t timeout_ms = 0;

  void set_pair(const Id& agent, const Id& machine);
  Verdict decide(const BlobView& table, std::uint64_t now_secs) const;
};

// 64 hexadecimal digits of either case.
std::optional<Id> parse_id(std::string_view hex);

// The snake_case name on the wire, and what it means in words.
std::string denial_name(wire::DenialReason reason);
std::string denial_meaning(wire::DenialReason reason);

}  // namespace x0x::policyc
