// Total reads of a table that blob_validate.cpp has accepted.
#include "enforcer/blob_view.hpp"

namespace x0x {

using namespace blob;

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

void tighten(std::uint64_t& cap, std::uint64_t other) {
  if (other != 0 && other < cap) cap = other;
}

// The parts of an argv that a rule of this shape fixes, each as long as it can be: up to the end of a template's piece,
// then on from the next token. They are the same bytes in a request and in the pieces of a rule that matches it.
template <class Visit>
void each_run(const BlobView& table, const Shape& shape, const Argv& argv, Visit visit) {
  std::size_t from = 0;
  for (std::uint32_t i = 0; i < shape.template_count; ++i) {
    const Template t = table.template_at(shape.first_template + i);
    visit(argv.block.subspan(from, argv.starts[t.token] + t.piece_bytes - from));
    from = argv.starts[t.token + 1];
  }
  if (from < argv.block.size()) visit(argv.block.subspan(from));
}

}  // namespace

// Sixteen bytes a step; the last eight may overlap what has been seen.
std::uint64_t hash_bytes(std::uint64_t seed, Bytes bytes) {
  const std::uint8_t* p = bytes.data();
  std::size_t n = bytes.size();
  std::uint64_t h = seed ^ (n * kHashLength), first = 0, last = 0;
  for (; n > 16; p += 16, n -= 16) h = fold(load_u64(p) ^ kHashFirst, load_u64(p + 8) ^ h);
  if (bytes.size() >= 8) {
    first = n > 8 ? load_u64(p) : 0;
    last = load_u64(p + n - 8);
  } else {
    for (std::size_t i = 0; i < n; ++i) last = last << 8 | p[i];
  }
  return fold(first ^ kHashFirst, last ^ h);
}

template <class Matches>
std::uint32_t BlobView::find(std::uint64_t hash, std::uint32_t limit, Matches matches) const {
  const std::uint32_t mask = header_.slot_count - 1, tag = static_cast<std::uint32_t>(hash >> 32);
  std::uint32_t at = static_cast<std::uint32_t>(hash) & mask;
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe, at = (at + 1) & mask) {
    const blob::Slot slot = record<blob::Slot>(slots_, at);
    if (slot.number == 0 || slot.number > limit) break;
    if (slot.tag == tag && (slot.number == limit || matches(slot.number - 1))) return slot.number - 1;
  }
  return kNone;
}

std::uint32_t BlobView::find_pair(const std::uint8_t* key, std::uint32_t limit) const {
  return find(hash_bytes(kHashPair, {key, kPairBytes}), limit, [&](std::uint32_t i) {
    return i < header_.pair_count && std::memcmp(pairs_ + i * sizeof(Pair), key, kPairBytes) == 0;
  });
}

std::uint32_t BlobView::find_rule(std::uint32_t shape_number, const Argv& argv, std::uint32_t limit) const {
  const Shape wanted = shape(shape_number);
  std::uint64_t hash = shape_number;
  std::size_t size = wanted.template_count;  // a NUL after each template's piece
  each_run(*this, wanted, argv, [&](Bytes run) {
    hash = hash_bytes(hash, run);
    size += run.size();
  });
  const std::uint32_t pairs = header_.pair_count;
  const std::uint32_t found = find(hash, limit, [&](std::uint32_t i) {
    if (i < pairs || rule(i - pairs).shape != shape_number) return false;
    const Bytes wants = pieces(i - pairs);
    const std::uint8_t* p = wants.data();
    bool same = wants.size() == size;
    each_run(*this, wanted, argv, [&](Bytes run) {
      same = same && std::memcmp(p, run.data(), run.size()) == 0;
      p += run.size() + 1;
    });
    return same;
  });
  return found == kNone ? kNone : found - pairs;
}

Bytes BlobView::pieces(std::uint32_t i) const {
  const std::uint32_t from = rule(i).pieces;
  const std::uint32_t to = i + 1 < header_.rule_count ? rule(i + 1).pieces : header_.piece_bytes;
  return {pieces_ + from, to - from};
}

Options BlobView::options(std::uint32_t i) const {
  const std::uint32_t number = rule(i).options;
  return number == kNone ? Options{} : record<Options>(options_, number);
}

Caps BlobView::caps(std::uint32_t rule_number) const {
  Caps caps = header_.caps;
  const Options o = options(rule_number);
  tighten(caps.max_duration_secs, entry(rule(rule_number).entry).max_duration_secs);
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
