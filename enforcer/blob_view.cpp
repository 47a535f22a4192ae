// Total reads of a table that blob_validate.cpp has accepted.
#include "enforcer/blob_view.hpp"

#include <cstring>

namespace x0x {

using namespace blob;

// Eight bytes a step, then a tail that overlaps itself; the length is mixed in first, so no two labels agree
// by padding. It spreads labels over slots and promises nothing more: a lookup always compares the label
// itself.
std::uint64_t hash_label(Bytes label) {
  const std::uint8_t* p = label.data();
  std::size_t n = label.size();
  std::uint64_t h = kHashSeed ^ (n * kHashParent);
  for (; n >= 8; p += 8, n -= 8) {
    h = (h ^ load_u64(p)) * kHashWord;
    h ^= h >> 32;
  }
  std::uint64_t tail = 0;
  if (n >= 4)
    tail = load_u32(p) | std::uint64_t{load_u32(p + n - 4)} << 32;
  else if (n > 0)
    tail = std::uint64_t{p[0]} << 16 | std::uint64_t{p[n / 2]} << 8 | p[n - 1];
  h = (h ^ tail) * kHashWord;
  return h ^ (h >> 32);
}

std::uint32_t home_slot(std::uint32_t parent, std::uint8_t kind, std::uint64_t label_hash, std::uint32_t mask) {
  std::uint64_t h = (label_hash ^ (std::uint64_t{parent} << 8 | kind) * kHashParent) * kHashFinal;
  return static_cast<std::uint32_t>(h >> 32) & mask;
}

std::uint32_t BlobView::child(std::uint32_t parent, std::uint8_t kind, Bytes label, std::uint64_t label_hash) const {
  const std::uint32_t mask = slot_count() - 1;
  std::uint32_t slot = home_slot(parent, kind, label_hash, mask);
  for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask) {
    const std::uint32_t found = load_u32(slots_ + std::size_t{slot} * kSlotBytes);
    if (found == 0) return 0;
    const std::uint8_t* record = positions_ + std::size_t{found} * kPositionBytes;
    if (load_u32(record + kPositionParent) == parent && record[kPositionKind] == kind &&
        load_u32(record + kPositionLabelBytes) == label.size() &&
        (label.empty() || std::memcmp(labels_ + load_u32(record + kPositionLabel), label.data(), label.size()) == 0))
      return found;
  }
  return 0;
}

Text BlobView::text(const std::uint8_t* ref) const {
  const std::uint32_t offset = load_u32(ref);
  if (offset == kNone) return {};
  return {Bytes(texts_ + offset, load_u32(ref + 4))};
}

Position BlobView::position(std::uint32_t i) const {
  const std::uint8_t* p = positions_ + std::size_t{i} * kPositionBytes;
  return {load_u32(p + kPositionParent),
          Bytes(labels_ + load_u32(p + kPositionLabel), load_u32(p + kPositionLabelBytes)),
          load_u32(p + kPositionRule),
          load_u32(p + kPositionPair),
          p[kPositionKind],
          p[kPositionTemplates],
          p[kPositionWidth]};
}

Entry BlobView::entry(std::uint32_t i) const {
  const std::uint8_t* p = entries_ + std::size_t{i} * kEntryBytes;
  return {load_u32(p + kEntryPair), load_u32(p + kEntryFirstRule), load_u64(p + kEntryMaxDurationSecs),
          text(p + kEntryDescription)};
}

Rule BlobView::rule(std::uint32_t i) const {
  const std::uint8_t* p = rules_ + std::size_t{i} * kRuleBytes;
  return {load_u32(p + kRuleEntry), load_u32(p + kRulePosition), load_u32(p + kRuleOptions)};
}

Options BlobView::options(std::uint32_t rule_index) const {
  const std::uint32_t index = rule(rule_index).options;
  Options o{};
  if (index == kNone) return o;
  const std::uint8_t* p = options_ + std::size_t{index} * kOptionsBytes;
  o.present = true;
  o.flags = load_u32(p + kOptionsFlags);
  o.first_item = load_u32(p + kOptionsFirstItem);
  o.env_count = load_u32(p + kOptionsEnvCount);
  o.writable_count = load_u32(p + kOptionsWritableCount);
  o.allow_count = load_u32(p + kOptionsAllowCount);
  o.deny_count = load_u32(p + kOptionsDenyCount);
  o.sha256 = (o.flags & kOptionHasSha256) != 0 ? p + kOptionsSha256 : nullptr;
  o.exe = text(p + kOptionsExe);
  o.reason = text(p + kOptionsReason);
  o.cwd = text(p + kOptionsCwd);
  o.max_duration_secs = load_u64(p + kOptionsMaxDurationSecs);
  o.max_stdout_bytes = load_u64(p + kOptionsMaxStdoutBytes);
  o.max_stderr_bytes = load_u64(p + kOptionsMaxStderrBytes);
  o.max_stdin_bytes = load_u64(p + kOptionsMaxStdinBytes);
  o.cpu_secs = load_u64(p + kOptionsLimitCpuSecs);
  o.memory_bytes = load_u64(p + kOptionsLimitMemoryBytes);
  o.file_bytes = load_u64(p + kOptionsLimitFileBytes);
  o.open_files = load_u64(p + kOptionsLimitOpenFiles);
  o.processes = load_u64(p + kOptionsLimitProcesses);
  return o;
}

Caps BlobView::global_caps() const {
  return {header_u64(kHeaderMaxStdoutBytes),  header_u64(kHeaderMaxStderrBytes),  header_u64(kHeaderMaxStdinBytes),
          header_u64(kHeaderMaxDurationSecs), header_u64(kHeaderWarnStdoutBytes), header_u64(kHeaderWarnStderrBytes),
          header_u64(kHeaderWarnDurationSecs)};
}

namespace {
void tighten(std::uint64_t& cap, std::uint64_t other) {
  if (other != 0 && other < cap) cap = other;
}
}  // namespace

Caps BlobView::caps(std::uint32_t rule_index) const {
  Caps caps = global_caps();
  const Options o = options(rule_index);
  tighten(caps.duration_secs, entry(rule(rule_index).entry).max_duration_secs);
  tighten(caps.duration_secs, o.max_duration_secs);
  tighten(caps.stdout_bytes, o.max_stdout_bytes);
  tighten(caps.stderr_bytes, o.max_stderr_bytes);
  tighten(caps.stdin_bytes, o.max_stdin_bytes);
  tighten(caps.warn_stdout_bytes, caps.stdout_bytes);
  tighten(caps.warn_stderr_bytes, caps.stderr_bytes);
  tighten(caps.warn_duration_secs, caps.duration_secs);
  return caps;
}

}  // namespace x0x
