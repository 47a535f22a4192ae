#include "policyc/request.hpp"

#include <sodium.h>

#include <algorithm>

namespace x0x::policyc {

void OwnedRequest::set_pair(const Id& agent, const Id& machine) {
  std::copy(agent.begin(), agent.end(), pair.begin());
  std::copy(machine.begin(), machine.end(), pair.begin() + 32);
}

Verdict OwnedRequest::decide(const BlobView& table, std::uint64_t now_secs) const {
  std::string block;
  for (std::string token : argv) {
    std::ranges::replace(token, '\0', static_cast<char>(kNulInToken));
    block.append(token).push_back('\0');
  }
  const Bytes bytes(reinterpret_cast<const std::uint8_t*>(block.data()), block.size());
  return x0x::decide(table, {pair.data(), bytes, cwd_present, stdin_bytes, timeout_ms}, now_secs);
}

std::optional<Id> parse_id(std::string_view hex) {
  Id id{};
  std::size_t length = 0;
  if (hex.size() != id.size() * 2) return std::nullopt;
  const int failed = sodium_hex2bin(id.data(), id.size(), hex.data(), hex.size(), nullptr, &length, nullptr);
  return failed == 0 && length == id.size() ? std::optional(id) : std::nullopt;
}

std::string denial_name(wire::DenialReason reason) { return wire::kDenialNames[static_cast<std::size_t>(reason)]; }

std::string denial_meaning(wire::DenialReason reason) {
  switch (reason) {
    case wire::DenialReason::exec_disabled:
      return "the policy is disabled or outside its validity window";
    case wire::DenialReason::agent_machine_not_in_acl:
      return "no entry is for this agent on this machine";
    case wire::DenialReason::argv_not_allowed:
      return "no command of this agent and machine matches the whole argv";
    case wire::DenialReason::stdin_too_large:
      return "more standard input than the command accepts";
    case wire::DenialReason::timeout_too_large:
      return "a longer timeout than the command may have";
    case wire::DenialReason::cwd_not_allowed:
      return "a request may not choose its working directory";
    case wire::DenialReason::shell_metachar_in_argv:
      return "a token holds a character that no request may hold";
    default:
      return "";
  }
}

}  // namespace x0x::policyc
