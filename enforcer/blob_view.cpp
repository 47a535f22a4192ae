// Total reads of a table that blob_validate.cpp has accepted, and the two lookups of a decision.
#include "enforcer/blob_view.hpp"

#include <algorithm>

namespace x0x {

using namespace blob;

__extension__ using Wide = unsigned __int128;

static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Sixteen bytes a step; the last eight may overlap what has been seen.
static inline std::uint64_t spread(std::uint64_t seed, const std::uint8_t* p, std::size_t size) {
  std::uint64_t h = seed ^ (size * kHashLength), first = 0, last = 0;
  const std::uint8_t* const end = p + size;
  for (; end - p > 16; p += 16) h = fold(load_u64(p) ^ kHashFirst, load_u64(p + 8) ^ h);
  if (size >= 8) {
    first = end - p > 8 ? load_u64(p) : 0;
    last = load_u64(end - 8);
  } else {
    for (; p < end; ++p) last = last << 8 | *p;
  }
  return fold(first ^ kHashFirst, last ^ h);
}
std::uint64_t hash_bytes(std::uint64_t seed, Bytes bytes) { return spread(seed, bytes.data(), bytes.size()); }

std::uint32_t BlobView::find_pair(const std::uint8_t* key) const {
  const std::uint64_t hash = spread(kHashPair, key, kPairBytes);
  const Slot found = first_slot(hash, [&](Slot slot) {
    return slot.tag == hash >> 32 && slot.number <= header_.pair_count &&
           std::memcmp(sections_[kPairs] + (slot.number - 1) * sizeof(Pair), key, kPairBytes) == 0;
  });
  return found.number - 1;  // an empty slot's is kNone
}

static bool matches(Template t, Bytes token) {
  const std::size_t fixed = t.piece_bytes;  // the prefix and the path's first slash; 0: <INT>
  if (fixed == 0) return is_int(token);
  return token.size() >= fixed && token[fixed - 1] == '/' && is_url_tail(token.subspan(fixed));
}

// Is it a rule with this shape and the fixed bytes of this argv? So many they are, with a NUL after each template's.
bool BlobView::is_rule(std::uint32_t number, std::uint32_t shape_number, Bytes block, std::size_t size) const {
  const Bytes wanted = pieces(number);
  if (rule(number).shape != shape_number || wanted.size() != size) return false;
  const std::uint8_t* end = wanted.data() + size;
  bool same = true;
  each_run(
      shape(shape_number), block, [](Template, Bytes) { return true; },
      [&](Bytes run) {
        end -= run.size();
        same = std::memcmp(end--, run.data(), run.size()) == 0 && same;
      });
  return same;
}

// The one rule of this shape that can match: the first with the fixed bytes of this argv.
inline std::uint32_t BlobView::find_rule(std::uint32_t shape_number, Shape shape, Bytes block) const {
  std::uint64_t hash = shape_number;
  std::size_t size = shape.template_count;
  const bool fits = each_run(shape, block, matches, [&](Bytes run) {
    if (!run.empty()) hash = spread(hash, run.data(), run.size());
    size += run.size();
  });
  if (!fits) return kNone;
  const std::uint32_t pairs = header_.pair_count;
  const Slot found = first_slot(hash, [&](Slot slot) {
    return slot.tag == hash >> 32 && slot.number > pairs && is_rule(slot.number - 1 - pairs, shape_number, block, size);
  });
  return found.number == 0 ? kNone : found.number - 1 - pairs;
}

std::uint32_t BlobView::first_match(std::uint32_t pair, Bytes block, std::uint32_t argc) const {
  const std::uint8_t* const asking = sections_[kPairs] + pair * sizeof(Pair);
  const std::uint32_t from = load_u32(asking + offsetof(Pair, first_shape));
  const std::uint32_t to = from + load_u32(asking + offsetof(Pair, shape_count));
  std::uint32_t first = kNone;
  for (std::uint32_t i = from; i < to; ++i)
    if (const Shape tried = shape(i); tried.argc == argc) first = std::min(first, find_rule(i, tried, block));
  return first;
}

Bytes BlobView::pieces(std::uint32_t i) const {
  const std::uint32_t from = rule(i).pieces;
  const std::uint32_t to = i + 1 < header_.rule_count ? rule(i + 1).pieces : header_.piece_bytes;
  return {sections_[kPieces] + from, to - from};
}

Options BlobView::options(std::uint32_t i) const {
  const std::uint32_t number = rule(i).options;
  return number == kNone ? kNoOptions : record<Options>(kOptions, number);
}

static void tighten(std::uint64_t& cap, std::uint64_t other) {
  if (other != 0 && other < cap) cap = other;
}

Caps BlobView::caps(std::uint32_t i) const {
  Caps caps = header_.caps;
  const Options o = options(i);
  tighten(caps.max_duration_secs, entry(rule(i).entry).max_duration_secs);
  tighten(caps.max_duration_secs, o.max_duration_secs);
  tighten(caps.max_stdout_bytes, o.max_stdout_bytes);
  tighten(caps.max_stderr_bytes, o.max_stderr_bytes);
  tighten(caps.max_stdin_bytes, o.max_stdin_bytes);
  if ((o.flags & kOptionNoStdin) != 0) caps.max_stdin_bytes = 0;
  tighten(caps.warn_stdout_bytes, caps.max_stdout_bytes);
  tighten(caps.warn_stderr_bytes, caps.max_stderr_bytes);
  tighten(caps.warn_duration_secs, caps.max_duration_secs);
  return caps;
}

}  // namespace x0x
