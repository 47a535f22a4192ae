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
  const std::uint32_t mask = slot_count() - 1, tag = static_cast<std::uint32_t>(hash >> 32);
  std::uint32_t slot = static_cast<std::uint32_t>(hash) & mask;
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask) {
    const std::uint8_t* p = slots_ + std::size_t{slot} * kSlotBytes;
    const std::uint32_t number = load_u32(p + kSlotNumber);
    if (number == 0 || number > limit) break;
    if (load_u32(p + kSlotTag) == tag && (number == limit || matches(number - 1))) return number - 1;
  }
  return kNone;
}

std::uint32_t BlobView::find_pair(const std::uint8_t* key, std::uint32_t limit) const {
  return find(hash_bytes(kHashPair, {key, kPairBytes}), limit, [&](std::uint32_t i) {
    return i < pair_count() && std::memcmp(pairs_ + i * sizeof(Pair), key, kPairBytes) == 0;
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
  const std::uint32_t pairs = pair_count();
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

Text BlobView::text(const std::uint8_t* ref) const {
  const std::uint32_t offset = load_u32(ref);
  if (offset == kNone) return {};
  return {Bytes(texts_ + offset, load_u32(ref + 4))};
}

Entry BlobView::entry(std::uint32_t i) const {
  const std::uint8_t* p = entries_ + std::size_t{i} * kEntryBytes;
  return {load_u32(p + kEntryPair), load_u32(p + kEntryFirstRule), load_u64(p + kEntryMaxDurationSecs),
          text(p + kEntryDescription)};
}

Bytes BlobView::pieces(std::uint32_t i) const {
  const std::uint32_t from = rule(i).pieces;
  const std::uint32_t to = i + 1 < rule_count() ? rule(i + 1).pieces : header_u32(kHeaderPieceBytes);
  return {pieces_ + from, to - from};
}

Options BlobView::options(std::uint32_t rule_number) const {
  const std::uint32_t number = rule(rule_number).options;
  if (number == kNone) return {};
  const std::uint8_t* p = options_ + std::size_t{number} * kOptionsBytes;
  const auto u32 = [p](std::size_t field) { return load_u32(p + field); };
  const auto u64 = [p](std::size_t field) { return load_u64(p + field); };
  return {true,
          u32(kOptionsFlags),
          u32(kOptionsEnvCount),
          u32(kOptionsWritableCount),
          u32(kOptionsAllowCount),
          u32(kOptionsDenyCount),
          u32(kOptionsFirstItem),
          (u32(kOptionsFlags) & kOptionHasSha256) != 0 ? p + kOptionsSha256 : nullptr,
          text(p + kOptionsExe),
          text(p + kOptionsReason),
          text(p + kOptionsCwd),
          u64(kOptionsMaxDurationSecs),
          u64(kOptionsMaxStdoutBytes),
          u64(kOptionsMaxStderrBytes),
          u64(kOptionsMaxStdinBytes),
          {u64(kOptionsLimitCpuSecs), u64(kOptionsLimitMemoryBytes), u64(kOptionsLimitFileBytes),
           u64(kOptionsLimitOpenFiles), u64(kOptionsLimitProcesses)}};
}

Caps BlobView::caps(std::uint32_t rule_number) const {
  Caps caps = global_caps();
  const Options o = options(rule_number);
  tighten(caps.duration_secs, entry(rule(rule_number).entry).max_duration_secs);
  tighten(caps.duration_secs, o.max_duration_secs);
  tighten(caps.stdout_bytes, o.max_stdout_bytes);
  tighten(caps.stderr_bytes, o.max_stderr_bytes);
  tighten(caps.stdin_bytes, o.max_stdin_bytes);
  if ((o.flags & kOptionNoStdin) != 0) caps.stdin_bytes = 0;
  tighten(caps.warn_stdout_bytes, caps.stdout_bytes);
  tighten(caps.warn_stderr_bytes, caps.stderr_bytes);
  tighten(caps.warn_duration_secs, caps.duration_secs);
  return caps;
}

}  // namespace x0x
