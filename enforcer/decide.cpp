#include "enforcer/decide.hpp"

#include <algorithm>

namespace x0x {

using wire::DenialReason;

static std::uint32_t find_pair(const BlobView& table, const std::uint8_t* key) {
  const Group<Pair> pairs = table.pairs();
  return pairs.find(hash_pair(key), [&](std::uint32_t i) {
    return std::memcmp(pairs.records + i * sizeof(Pair) + offsetof(Pair, key), key, blob::kPairBytes) == 0;
  });
}

static bool matches(Template t, Bytes token) {
  const std::size_t fixed = t.piece_bytes;  // the prefix and the path's first slash; 0: <INT>
  if (fixed == 0) return is_int(token);
  return token.size() >= fixed && token[fixed - 1] == '/' && is_url_tail(token.subspan(fixed));
}

// Are these the pieces of this argv? As many bytes of them stand before `end`. Runs and the NULs between them are
// compared from the last to the first, so the runs begin and end where they do in the argv.
static bool are_pieces(const BlobView& table, const Shape& shape, Bytes argv, const std::uint8_t* end) {
  bool same = true, last = true;
  const auto compare = [&](Bytes run) {
    if (!last) same &= *--end == 0;  // of the template before the run that was compared
    last = false;
    end -= run.size();
    same &= std::memcmp(end, run.data(), run.size()) == 0;
  };
  table.each_run(
      shape, argv, [](Template, Bytes) { return true; }, compare);
  return same;
}

// The first rule of this shape that matches: all that do have the same pattern.
static std::uint32_t find_rule(const BlobView& table, const Shape& shape, Bytes argv) {
  std::uint64_t hash = 0;
  std::size_t size = shape.template_count;  // a NUL ends the piece of each
  const auto add = [&](Bytes run) {
    if (!run.empty()) hash = hash_bytes(hash, run);
    size += run.size();
  };
  if (!table.each_run(shape, argv, matches, add)) return blob::kNone;
  const Group<Pattern> patterns = table.patterns(shape);
  const std::uint32_t found = patterns.find(hash, [&](std::uint32_t i) {
    const Bytes pieces = table.pieces(patterns.at(i));
    return pieces.size() == size && are_pieces(table, shape, argv, pieces.data() + size);
  });
  return found == blob::kNone ? blob::kNone : patterns.at(found).rule;
}

// In file order, of all rules of the pair that match.
static std::uint32_t first_match(const BlobView& table, std::uint32_t pair, Bytes argv) {
  const std::uint32_t from = table.pairs().at(pair).first_shape, to = from + table.pairs().at(pair).shape_count;
  std::uint32_t first = blob::kNone;
  for (std::uint32_t i = from; i < to; ++i) first = std::min(first, find_rule(table, table.shape(i), argv));
  return first;
}

bool in_window(const BlobView& table, std::uint64_t now_secs) {
  return now_secs >= table.header().not_before && (table.header().expires == 0 || now_secs < table.header().expires);
}

Verdict decide(const BlobView& table, const Request& request, std::uint64_t now_secs) {
  const auto deny = [](DenialReason reason, std::uint32_t rule = blob::kNone) {
    return Verdict{Decision::deny, reason, rule};
  };
  if (!table.enabled() || !in_window(table, now_secs)) return deny(DenialReason::exec_disabled);
  if (request.argv_block.empty()) return deny(DenialReason::argv_not_allowed);
  if (request.cwd_present) return deny(DenialReason::cwd_not_allowed);
  // No rule holds a forbidden byte and no template admits one; a fault there must not be enough to let one through.
  if (!is_argv(request.argv_block)) return deny(DenialReason::shell_metachar_in_argv);

  const std::uint32_t pair = find_pair(table, request.pair);
  if (pair == blob::kNone) return deny(DenialReason::agent_machine_not_in_acl);
  const std::uint32_t rule = first_match(table, pair, request.argv_block);
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
