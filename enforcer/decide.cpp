#include "enforcer/decide.hpp"

namespace x0x {

using wire::DenialReason;

namespace {

bool templates_fit(const BlobView& table, const Shape& shape, const Argv& argv) {
  for (std::uint32_t i = 0; i < shape.template_count; ++i) {
    const Template t = table.template_at(shape.first_template + i);
    const Bytes token = argv.token(t.token);
    const std::size_t fixed = t.piece_bytes;  // the prefix and the path's first slash; 0: <INT>
    if (fixed == 0 ? !is_int(token)
                   : token.size() < fixed || token[fixed - 1] != '/' || !is_url_tail(token.subspan(fixed)))
      return false;
  }
  return true;
}

// The first rule of the pair, in file order, that matches the whole argv. A shape has at most one candidate, and a pair
// at most kMaxShapes shapes, in order of argc.
std::uint32_t first_match(const BlobView& table, const Pair& pair, const Argv& argv, std::uint32_t argc) {
  std::uint32_t first = blob::kNone;
  for (std::uint32_t i = 0; i < pair.shape_count; ++i) {
    const Shape shape = table.shape(pair.first_shape + i);
    if (shape.argc > argc) break;
    if (shape.argc < argc || shape.first_rule >= first || !templates_fit(table, shape, argv)) continue;
    if (const std::uint32_t rule = table.find_rule(pair.first_shape + i, argv); rule < first) first = rule;
  }
  return first;
}

}  // namespace

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
  Argv argv;
  // No rule holds a forbidden byte and no template admits one; a fault there must not be enough to let one through.
  if (!argv.split(request.argv_block, request.argc) || has_forbidden_byte(request.argv_block))
    return deny(DenialReason::shell_metachar_in_argv);

  const std::uint32_t pair = table.find_pair(request.pair);
  if (pair == blob::kNone) return deny(DenialReason::agent_machine_not_in_acl);
  const std::uint32_t rule = first_match(table, table.pair(pair), argv, request.argc);
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
