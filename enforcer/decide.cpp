#include "enforcer/decide.hpp"

namespace x0x {

using wire::DenialReason;

bool in_window(const BlobView& table, std::uint64_t now_secs) {
  return now_secs >= table.header().not_before && (table.header().expires == 0 || now_secs < table.header().expires);
}

Verdict decide(const BlobView& table, const Request& request, std::uint64_t now_secs) {
  const auto deny = [](DenialReason reason, std::uint32_t rule = blob::kNone) {
    return Verdict{Decision::deny, reason, rule};
  };
  if (!table.enabled() || !in_window(table, now_secs)) return deny(DenialReason::exec_disabled);
  if (request.argc == 0) return deny(DenialReason::argv_not_allowed);
  if (request.cwd_present) return deny(DenialReason::cwd_not_allowed);
  // No rule holds a forbidden byte and no template admits one; a fault there must not be enough to let one through.
  if (!is_argv(request.argv_block, request.argc)) return deny(DenialReason::shell_metachar_in_argv);

  const std::uint32_t pair = table.find_pair(request.pair);
  if (pair == blob::kNone) return deny(DenialReason::agent_machine_not_in_acl);
  const std::uint32_t rule = table.first_match(pair, request.argv_block, request.argc);
  if (rule == blob::kNone) return deny(DenialReason::argv_not_allowed);

  if (request.stdin_bytes != 0 || request.timeout_ms != 0) {  // most requests ask for neither
    const Caps caps = table.caps(rule);
    if (request.stdin_bytes > caps.max_stdin_bytes) return deny(DenialReason::stdin_too_large, rule);
    if ((std::uint64_t{request.timeout_ms} + 999) / 1000 > caps.max_duration_secs)
      return deny(DenialReason::timeout_too_large, rule);
  }
  return {Decision::allow, DenialReason{}, rule};
}

}  // namespace x0x
