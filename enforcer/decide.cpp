#include "enforcer/decide.hpp"

#include "enforcer/text.hpp"

namespace x0x {

using namespace blob;
using wire::DenialReason;

namespace {

// The positions a request can be at. The table's width bounds how many there are; were that ever wrong, the
// oldest would be forgotten, which can only deny.
struct Live {
  std::uint32_t positions[kMaxWidth];
  std::uint32_t count = 0;

  void add(std::uint32_t position) {
    if (position != 0) positions[count++ % kMaxWidth] = position;
  }
  std::span<const std::uint32_t> all() const { return {positions, count < kMaxWidth ? count : kMaxWidth}; }
};

// Every slash that begins a URL path ending with the token may be where a prefix of the table stops.
void follow_url_paths(const BlobView& table, std::uint32_t position, Bytes token, Live& next) {
  const std::size_t tail = url_tail_start(token);
  for (std::size_t end = tail > 0 ? tail : 1; end <= token.size(); ++end) {
    if (token[end - 1] != '/') continue;
    const Bytes prefix = token.first(end);
    next.add(table.child(position, kKindUrlPath, prefix, hash_label(prefix)));
  }
}

void follow(const BlobView& table, std::uint32_t position, Bytes token, std::uint64_t token_hash, Live& next) {
  next.add(table.child(position, kKindLiteral, token, token_hash));
  const std::uint8_t templates = table.templates(position);
  if ((templates & kTemplateInt) != 0 && is_int(token)) next.add(table.child(position, kKindInt, {}, hash_label({})));
  if ((templates & kTemplateUrlPath) != 0) follow_url_paths(table, position, token, next);
}

}  // namespace

std::uint32_t first_match(const BlobView& table, std::uint32_t pair, std::span<const Bytes> argv) {
  Live live;
  live.add(pair);
  for (const Bytes token : argv) {
    const std::uint64_t token_hash = hash_label(token);
    Live next;
    for (const std::uint32_t position : live.all()) follow(table, position, token, token_hash, next);
    live = next;
  }
  std::uint32_t first = kNone;
  for (const std::uint32_t position : live.all())
    if (const std::uint32_t rule = table.position(position).rule; rule < first) first = rule;
  return first;
}

bool in_window(const BlobView& table, std::uint64_t now_secs) {
  return now_secs >= table.not_before() && (table.expires() == 0 || now_secs < table.expires());
}

Verdict decide(const BlobView& table, const Request& request, std::uint64_t now_secs) {
  const auto deny = [](DenialReason reason, std::uint32_t rule = kNone) {
    return Verdict{Decision::deny, reason, rule};
  };
  if (!table.enabled() || !in_window(table, now_secs)) return deny(DenialReason::exec_disabled);
  if (request.argv.empty()) return deny(DenialReason::argv_not_allowed);
  if (request.cwd_present) return deny(DenialReason::cwd_not_allowed);
  for (const Bytes token : request.argv)
    if (has_forbidden_byte(token)) return deny(DenialReason::shell_metachar_in_argv);

  const Bytes key(request.pair, kPairBytes);
  const std::uint32_t pair = table.child(0, kKindPair, key, hash_label(key));
  if (pair == 0) return deny(DenialReason::agent_machine_not_in_acl);
  const std::uint32_t rule = first_match(table, pair, request.argv);
  if (rule == kNone) return deny(DenialReason::argv_not_allowed);

  const Caps caps = table.caps(rule);
  const bool stdin_refused = (table.options(rule).flags & kOptionNoStdin) != 0;
  if (request.stdin_bytes > (stdin_refused ? 0 : caps.stdin_bytes)) return deny(DenialReason::stdin_too_large, rule);
  if ((std::uint64_t{request.timeout_ms} + 999) / 1000 > caps.duration_secs)
    return deny(DenialReason::timeout_too_large, rule);
  return {Decision::allow, DenialReason{}, rule};
}

}  // namespace x0x
