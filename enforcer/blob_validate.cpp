// BlobView::open: one linear pass over a table that accepts nothing but what the compiler writes.
//
// Section by section, each running counter (next text, next item, next rule, next label) is compared with
// what the record says, so nothing overlaps, nothing is left over and nothing is there twice. The trie is
// stored level by level, children of one parent side by side and in order; that makes its shape unique and
// lets the pass check every bound with two positions in view: a parent and its children.
#include <bit>
#include <cstring>

#include "enforcer/blob_view.hpp"
#include "enforcer/siblings.hpp"
#include "enforcer/text.hpp"

namespace x0x {

using namespace blob;

namespace {

bool is_absolute(Bytes path) { return !path.empty() && path[0] == '/'; }

// -1, 0, 1 by bytes, shorter first on a tie.
int compare(Bytes a, Bytes b) {
  const std::size_t n = a.size() < b.size() ? a.size() : b.size();
  if (const int order = n == 0 ? 0 : std::memcmp(a.data(), b.data(), n); order != 0) return order;
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}  // namespace

class Validator {
 public:
  explicit Validator(Bytes payload) { v_.payload_ = payload; }

  Result<BlobView> run() {
    if (!lay_out() || !header() || !entries() || !options() || !items() || !positions() || !rules()) return fault_;
    if (text_cursor_ != v_.header_u32(kHeaderTextBytes)) return Fault::bad_text;
    return v_;
  }

 private:
  bool fail(Fault fault) {
    fault_ = fault;
    return false;
  }
  bool require(bool holds, Fault fault) { return holds || fail(fault); }

  // Magic, version, and where each section lies. Sizes follow from counts, so sections cannot overlap.
  bool lay_out() {
    Cursor c(v_.payload_);
    const Bytes header = c.take(kHeaderBytes);
    if (c.failed()) return fail(Fault::truncated);
    if (std::memcmp(header.data() + kHeaderMagic, kMagic, 8) != 0) return fail(Fault::bad_magic);
    if (std::memcmp(header.data() + kHeaderPurpose, kPurpose, 8) != 0) return fail(Fault::wrong_purpose);
    if (v_.header_u32(kHeaderFormatVersion) != kFormatVersion) return fail(Fault::unknown_version);
    const auto section = [&](std::size_t count_field, std::size_t record_bytes) {
      return c.take(std::uint64_t{v_.header_u32(count_field)} * record_bytes).data();
    };
    v_.entries_ = section(kHeaderEntryCount, kEntryBytes);
    v_.rules_ = section(kHeaderRuleCount, kRuleBytes);
    v_.options_ = section(kHeaderOptionCount, kOptionsBytes);
    v_.items_ = section(kHeaderItemCount, kTextRefBytes);
    v_.positions_ = section(kHeaderPositionCount, kPositionBytes);
    v_.slots_ = section(kHeaderSlotCount, kSlotBytes);
    v_.labels_ = section(kHeaderLabelBytes, 1);
    v_.texts_ = section(kHeaderTextBytes, 1);
    if (c.failed()) return fail(Fault::truncated);
    return require(c.at_end(), Fault::trailing_bytes);
  }

  bool header() {
    if ((v_.header_u32(kHeaderFlags) & ~kFlagEnabled) != 0) return fail(Fault::bad_flags);
    if (v_.header_u32(kHeaderZero) != 0) return fail(Fault::bad_padding);
    if (v_.not_before() != 0 && v_.expires() != 0 && v_.not_before() >= v_.expires()) return fail(Fault::bad_window);
    const Caps caps = v_.global_caps();
    if (caps.stdout_bytes == 0 || caps.stderr_bytes == 0 || caps.stdin_bytes == 0 || caps.duration_secs == 0 ||
        caps.warn_stdout_bytes > caps.stdout_bytes || caps.warn_stderr_bytes > caps.stderr_bytes ||
        caps.warn_duration_secs > caps.duration_secs || v_.max_concurrent_per_agent() == 0 ||
        v_.max_concurrent_per_agent() > v_.max_concurrent_total())
      return fail(Fault::bad_cap);
    const std::uint32_t n = v_.position_count();
    if (n == 0 || v_.slot_count() != std::bit_ceil(std::uint64_t{n - 1} * 2) ||
        (v_.entry_count() == 0) != (v_.rule_count() == 0) || (v_.rule_count() == 0) != (n == 1))
      return fail(Fault::bad_count);
    return text(kHeaderName) && path(kHeaderDefaultCwd) && path(kHeaderAuditLogPath) &&
           require(v_.audit_log_path().present(), Fault::bad_path) && text(kHeaderAuditTasklistId);
  }

  // The next text of the fixed order, or an absent one.
  bool text_at(const std::uint8_t* ref) {
    const std::uint32_t offset = load_u32(ref), length = load_u32(ref + 4);
    if (offset == kNone) return require(length == 0, Fault::bad_text);
    const std::uint32_t left = v_.header_u32(kHeaderTextBytes) - text_cursor_;
    if (offset != text_cursor_ || length >= left || v_.texts_[offset + length] != 0) return fail(Fault::bad_text);
    text_cursor_ += length + 1;
    return require(is_utf8(Bytes(v_.texts_ + offset, length)), Fault::bad_text);
  }
  bool plain_text_at(const std::uint8_t* ref) {
    if (!text_at(ref)) return false;
    const Bytes bytes = v_.text(ref).bytes;
    return require(bytes.empty() || std::memchr(bytes.data(), 0, bytes.size()) == nullptr, Fault::bad_text);
  }
  bool path_at(const std::uint8_t* ref) {
    if (!plain_text_at(ref)) return false;
    const Text path = v_.text(ref);
    return require(!path.present() || is_absolute(path.bytes), Fault::bad_path);
  }
  bool text(std::size_t field) { return plain_text_at(v_.payload_.data() + field); }
  bool path(std::size_t field) { return path_at(v_.payload_.data() + field); }

  // Entries own the rules in order: the first starts at rule 0, each has at least one.
  bool entries() {
    std::uint32_t next_rule = 0;
    for (std::uint32_t i = 0; i < v_.entry_count(); ++i) {
      const std::uint8_t* p = v_.entries_ + std::size_t{i} * kEntryBytes;
      const std::uint32_t pair = load_u32(p + kEntryPair), first_rule = load_u32(p + kEntryFirstRule);
      if (pair == 0 || pair >= v_.position_count() || first_rule >= v_.rule_count() ||
          (i == 0 ? first_rule != 0 : first_rule < next_rule))
        return fail(Fault::bad_entry);
      next_rule = first_rule + 1;
      if (!plain_text_at(p + kEntryDescription)) return false;
    }
    return true;
  }

  bool options() {
    if (v_.audience_count() > v_.header_u32(kHeaderItemCount)) return fail(Fault::bad_item);
    item_cursor_ = v_.audience_count();
    for (std::uint32_t i = 0; i < v_.header_u32(kHeaderOptionCount); ++i) {
      const std::uint8_t* p = v_.options_ + std::size_t{i} * kOptionsBytes;
      const std::uint32_t flags = load_u32(p + kOptionsFlags);
      if ((flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
      std::uint8_t sha_bits = 0;
      for (std::size_t k = 0; k < 32; ++k) sha_bits |= p[kOptionsSha256 + k];
      if ((flags & kOptionHasSha256) == 0 && sha_bits != 0) return fail(Fault::bad_padding);
      if ((flags & kOptionHasWritable) == 0 && load_u32(p + kOptionsWritableCount) != 0)
        return fail(Fault::bad_options);
      if (load_u32(p + kOptionsFirstItem) != item_cursor_) return fail(Fault::bad_item);
      std::uint64_t set = flags;  // anything at all
      for (std::size_t field = kOptionsEnvCount; field < kOptionsFirstItem; field += 4) {
        const std::uint32_t count = load_u32(p + field);
        if (count > v_.header_u32(kHeaderItemCount) - item_cursor_) return fail(Fault::bad_item);
        item_cursor_ += count;
        set |= count;
      }
      for (std::size_t field = kOptionsMaxDurationSecs; field < kOptionsBytes; field += 8) set |= load_u64(p + field);
      for (const std::size_t field : {kOptionsExe, kOptionsReason, kOptionsCwd})
        set |= std::uint64_t{load_u32(p + field) != kNone};
      if (set == 0) return fail(Fault::bad_options);
      if (!path_at(p + kOptionsExe) || !plain_text_at(p + kOptionsReason) || !path_at(p + kOptionsCwd)) return false;
    }
    return require(item_cursor_ == v_.header_u32(kHeaderItemCount), Fault::bad_item);
  }

  // Lists: the audience, then each rule's env, writable paths and examples. Each is sorted and holds nothing
  // twice.
  bool items() {
    item_cursor_ = 0;
    if (!list(v_.audience_count(), [](Bytes name) { return !name.empty() && !has_nul(name); })) return false;
    for (std::uint32_t i = 0; i < v_.header_u32(kHeaderOptionCount); ++i) {
      const std::uint8_t* p = v_.options_ + std::size_t{i} * kOptionsBytes;
      if (!list(load_u32(p + kOptionsEnvCount), is_env_pair) ||
          !list(load_u32(p + kOptionsWritableCount), [](Bytes b) { return is_absolute(b) && !has_nul(b); }) ||
          !list(load_u32(p + kOptionsAllowCount), is_argv) || !list(load_u32(p + kOptionsDenyCount), is_argv))
        return false;
    }
    return true;
  }
  static bool has_nul(Bytes bytes) { return std::memchr(bytes.data(), 0, bytes.size()) != nullptr; }
  static bool is_env_pair(Bytes pair) {
    if (pair.empty() || pair[0] == '=' || has_nul(pair)) return false;
    return std::memchr(pair.data(), '=', pair.size()) != nullptr;
  }
  static bool is_argv(Bytes tokens) { return tokens.empty() || tokens.back() == 0; }  // each token and its NUL

  template <class Check>
  bool list(std::uint32_t count, Check well_formed) {
    for (std::uint32_t i = 0; i < count; ++i, ++item_cursor_) {
      const std::uint8_t* ref = v_.items_ + std::size_t{item_cursor_} * kTextRefBytes;
      if (!text_at(ref)) return false;
      const Text item = v_.text(ref);
      if (!item.present() || !well_formed(item.bytes) ||
          (i > 0 && compare(v_.item(item_cursor_ - 1).bytes, item.bytes) >= 0))
        return fail(Fault::bad_item);
    }
    return true;
  }

  bool rules() {
    std::uint32_t entry = 0, next_options = 0;
    for (std::uint32_t i = 0; i < v_.rule_count(); ++i) {
      const Rule rule = v_.rule(i);
      if (entry + 1 < v_.entry_count() && v_.entry(entry + 1).first_rule == i) ++entry;
      if (rule.entry != entry || rule.position >= v_.position_count()) return fail(Fault::bad_rule);
      const Position end = v_.position(rule.position);
      if (end.pair != v_.entry(entry).pair || end.rule > i || end.kind < kKindLiteral) return fail(Fault::bad_rule);
      if (rule.options != kNone && rule.options != next_options++) return fail(Fault::bad_rule);
    }
    return require(next_options == v_.header_u32(kHeaderOptionCount), Fault::bad_rule);
  }

  bool positions() {
    Position previous = v_.position(0);
    const Bytes labels(v_.labels_, v_.header_u32(kHeaderLabelBytes));
    std::uint32_t label_cursor = 0, occupied = 0;
    Siblings siblings;
    for (std::uint32_t i = 0; i < v_.position_count(); ++i) {
      const std::uint8_t* p = v_.positions_ + std::size_t{i} * kPositionBytes;
      const std::uint32_t length = load_u32(p + kPositionLabelBytes);
      if (load_u32(p + kPositionLabel) != label_cursor || length >= labels.size() - label_cursor ||
          labels[label_cursor + length] != 0)
        return fail(Fault::bad_label);
      label_cursor += length + 1;
      if (p[kPositionZero] != 0) return fail(Fault::bad_padding);
      const Position current = v_.position(i);
      if (i == 0) {
        if (current.parent != 0 || length != 0 || current.rule != kNone || current.pair != 0 ||
            current.kind != kKindRoot)
          return fail(Fault::bad_position);
        continue;
      }
      if (current.parent >= i || current.parent < previous.parent) return fail(Fault::bad_order);
      if (i > 1 && current.parent != previous.parent) {
        if (!close(previous.parent, current.parent, siblings)) return false;
        siblings.clear();
      } else if (i > 1 && (current.kind < previous.kind ||
                           (current.kind == previous.kind && compare(previous.label, current.label) >= 0))) {
        return fail(Fault::bad_order);
      }
      if (!position(i, current) || !indexed(i, current)) return false;
      siblings.add(current.kind, current.label, current.width);
      ++occupied;
      previous = current;
    }
    if (label_cursor != labels.size()) return fail(Fault::bad_label);
    if (!close(previous.parent, v_.position_count(), siblings)) return false;
    return index_holds(occupied);
  }

  bool position(std::uint32_t i, const Position& p) {
    const std::uint8_t parent_kind = v_.position(p.parent).kind;
    const bool is_pair = p.kind == kKindPair;
    if (p.kind < kKindPair || p.kind > kKindUrlPath || is_pair != (parent_kind == kKindRoot) ||
        p.pair != (is_pair ? i : v_.position(p.parent).pair))
      return fail(Fault::bad_position);
    if (p.rule != kNone && (is_pair || p.rule >= v_.rule_count() || v_.rule(p.rule).position != i))
      return fail(Fault::bad_position);
    if (is_pair) return require(p.label.size() == kPairBytes, Fault::bad_label);
    const std::uint8_t classes = classes_of(p.label);
    bool sound = (classes & kByteForbidden) == 0 && p.label.size() <= kMaxTokenBytes &&
                 ((classes & kByteHigh) == 0 || is_utf8(p.label));
    if (parent_kind == kKindPair)  // argv[0]: a name or an absolute path
      sound =
          sound && p.kind == kKindLiteral && !p.label.empty() && ((classes & kByteSlash) == 0 || is_absolute(p.label));
    if (p.kind == kKindInt) sound = sound && p.label.empty();
    if (p.kind == kKindUrlPath) sound = sound && !p.label.empty() && p.label.back() == '/';
    return require(sound, Fault::bad_label);
  }

  // `parent` has seen all its children; positions between it and `next` have none.
  bool close(std::uint32_t parent, std::uint32_t next, const Siblings& s) {
    const Position p = v_.position(parent);
    if (p.templates != s.templates()) return fail(Fault::bad_position);
    if (p.width != s.width() || p.width > kMaxWidth) return fail(Fault::bad_width);
    for (std::uint32_t i = parent + 1; i < next; ++i) {
      const Position leaf = v_.position(i);
      if (leaf.rule == kNone || leaf.templates != 0) return fail(Fault::bad_position);
      if (leaf.width != 1) return fail(Fault::bad_width);
    }
    return true;
  }

  // The index is what inserting positions in order into empty slots gives: on its way from home to its slot a
  // position meets earlier positions only.
  bool indexed(std::uint32_t i, const Position& p) {
    const std::uint32_t mask = v_.slot_count() - 1;
    std::uint32_t slot = home_slot(p.parent, p.kind, hash_label(p.label), mask);
    for (std::uint32_t probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask) {
      const std::uint32_t found = load_u32(v_.slots_ + std::size_t{slot} * kSlotBytes);
      if (found == i) return true;
      if (found == 0 || found > i) break;
    }
    return fail(Fault::bad_slot);
  }
  bool index_holds(std::uint32_t positions) {
    std::uint32_t occupied = 0;
    for (std::uint32_t i = 0; i < v_.slot_count(); ++i)
      occupied += load_u32(v_.slots_ + std::size_t{i} * kSlotBytes) != 0 ? 1u : 0u;
    return require(occupied == positions, Fault::bad_slot);
  }

  BlobView v_;
  Fault fault_ = Fault::none;
  std::uint32_t text_cursor_ = 0;
  std::uint32_t item_cursor_ = 0;
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

}  // namespace x0x
