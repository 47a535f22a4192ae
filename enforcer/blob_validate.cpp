// BlobView::open: one linear pass over a table that accepts nothing but what the compiler writes.
//
// Section by section, each running counter (next text, next item, next shape, next piece) is compared with what the
// record says, so nothing overlaps, nothing is left over and nothing is there twice.
#include <algorithm>
#include <bit>

#include "enforcer/blob_view.hpp"

namespace x0x {

using namespace blob;

static bool is_absolute(Bytes path) { return !path.empty() && path[0] == '/'; }
static bool has(Bytes bytes, char c) { return as_text(bytes).find(c) != std::string_view::npos; }
static bool is_name(Bytes item) { return !item.empty() && !has(item, '\0'); }
static bool is_env_pair(Bytes item) { return is_name(item) && item[0] != '=' && has(item, '='); }
static bool is_path(Bytes item) { return is_absolute(item) && !has(item, '\0'); }
static bool is_program(Bytes argv) {  // a name or an absolute path
  const Bytes name = next_token(argv);
  return is_absolute(name) || (!name.empty() && !has(name, '/'));
}
static bool is_example(Bytes item) { return item.empty() || item.back() == 0; }  // each token and its NUL

class Validator {
 public:
  explicit Validator(Bytes payload) { v_.payload_ = payload; }

  Result<BlobView> run() {
    if (lay_out() && header() && slots() && entries() && pairs() && options() && rules() && nothing_left()) return v_;
    return fault_;
  }

 private:
  bool require(bool holds, Fault fault) {
    if (!holds) fault_ = fault;
    return holds;
  }
  bool fail(Fault fault) { return require(false, fault); }

  // Magic, version, and where each section lies. Sizes follow from counts, so sections cannot overlap.
  bool lay_out() {
    Cursor c(v_.payload_);
    const Bytes header = c.take(kHeaderBytes);
    if (c.failed()) return fail(Fault::truncated);
    std::memcpy(static_cast<void*>(&v_.header_), header.data(), kHeaderBytes);
    if (std::memcmp(h_.magic, kMagic, 8) != 0) return fail(Fault::bad_magic);
    if (std::memcmp(h_.purpose, kPurpose, 8) != 0) return fail(Fault::wrong_purpose);
    if (h_.format_version != kFormatVersion) return fail(Fault::unknown_version);
    Cursor counts(header.subspan(offsetof(Header, pair_count)));
    for (std::size_t i = 0; i < BlobView::kSections; ++i)
      v_.sections_[i] = c.take(counts.u32() * kRecordBytes[i]).data();
    if (c.failed()) return fail(Fault::truncated);
    return require(c.at_end(), Fault::trailing_bytes);
  }

  bool header() {
    const Caps& caps = h_.caps;
    if ((h_.flags & ~kFlagEnabled) != 0) return fail(Fault::bad_flags);
    if (h_.not_before != 0 && h_.expires != 0 && h_.not_before >= h_.expires) return fail(Fault::bad_window);
    if (caps.max_stdout_bytes == 0 || caps.max_stderr_bytes == 0 || caps.max_stdin_bytes == 0 ||
        caps.max_duration_secs == 0 || caps.warn_stdout_bytes > caps.max_stdout_bytes ||
        caps.warn_stderr_bytes > caps.max_stderr_bytes || caps.warn_duration_secs > caps.max_duration_secs ||
        h_.max_concurrent_per_agent == 0 || h_.max_concurrent_per_agent > h_.max_concurrent_total)
      return fail(Fault::bad_cap);
    if (h_.slot_count != std::bit_ceil((std::uint64_t{h_.pair_count} + h_.rule_count) * 2) ||
        (h_.entry_count == 0) != (h_.rule_count == 0))
      return fail(Fault::bad_count);
    return text(h_.name) && path(h_.default_cwd) && path(h_.audit_log_path) &&
           require(v_.text(h_.audit_log_path).present(), Fault::bad_path) && text(h_.audit_tasklist_id) &&
           list(h_.audience_count, is_name);
  }

  // The next text of the fixed order, or an absent one.
  bool any_text(TextRef ref) {
    if (ref.offset == kNone) return require(ref.length == 0, Fault::bad_text);
    const Bytes left(v_.sections_[BlobView::kTexts] + next_text_, h_.text_bytes - next_text_);
    if (ref.offset != next_text_ || ref.length >= left.size() || left[ref.length] != 0) return fail(Fault::bad_text);
    next_text_ += ref.length + 1;
    return require(is_utf8(left.first(ref.length)), Fault::bad_text);
  }
  bool text(TextRef ref) { return any_text(ref) && require(!has(v_.text(ref).bytes, '\0'), Fault::bad_text); }
  bool path(TextRef ref) {
    return text(ref) && require(!v_.text(ref).present() || is_absolute(v_.text(ref).bytes), Fault::bad_path);
  }

  // The next items: sorted, each there once.
  bool list(std::uint32_t items, bool (*well_formed)(Bytes)) {
    if (items > h_.item_count - next_item_) return fail(Fault::bad_item);
    for (std::uint32_t i = 0; i < items; ++i, ++next_item_) {
      if (!any_text(v_.record<TextRef>(BlobView::kItems, next_item_))) return false;
      const Text item = v_.item(next_item_);
      if (!item.present() || !well_formed(item.bytes) ||
          (i > 0 && as_text(v_.item(next_item_ - 1).bytes) >= as_text(item.bytes)))
        return fail(Fault::bad_item);
    }
    return true;
  }

  // Entries own the rules in order, each at least one; a pair is numbered when an entry first names it.
  bool entries() {
    std::uint32_t next_pair = 0, next_rule = 0;
    for (std::uint32_t i = 0; i < h_.entry_count; ++i) {
      const Entry e = v_.entry(i);
      if (e.pair > next_pair || e.first_rule < next_rule || e.first_rule >= h_.rule_count ||
          (i == 0 && e.first_rule != 0))
        return fail(Fault::bad_entry);
      next_pair += e.pair == next_pair ? 1 : 0;
      next_rule = e.first_rule + 1;
      if (!text(e.description)) return false;
    }
    return require(next_pair == h_.pair_count, Fault::bad_pair);
  }

  bool pairs() {
    std::uint32_t next_shape = 0;
    for (std::uint32_t i = 0; i < h_.pair_count; ++i) {
      const Pair pair = v_.pair(i);
      if (pair.first_shape != next_shape || pair.shape_count == 0 || pair.shape_count > h_.shape_count - next_shape)
        return fail(Fault::bad_pair);
      if (pair.shape_count > kMaxShapes) return fail(Fault::too_many_shapes);
      for (; next_shape - pair.first_shape < pair.shape_count; ++next_shape) {
        if (!shape(next_shape)) return false;
        if (next_shape > pair.first_shape && !in_order(v_.shape(next_shape - 1), v_.shape(next_shape)))
          return fail(Fault::bad_order);
      }
      if (!indexed(i + 1, hash_bytes(kHashPair, pair.key)) || v_.find_pair(pair.key) != i) return fail(Fault::bad_slot);
    }
    return require(next_shape == h_.shape_count && next_template_ == h_.template_count, Fault::bad_shape);
  }

  bool shape(std::uint32_t number) {
    const Shape s = v_.shape(number);
    if (s.argc == 0 || s.argc > kMaxArgc || s.first_template != next_template_ ||
        s.template_count > h_.template_count - next_template_ || s.first_rule >= h_.rule_count ||
        v_.rule(s.first_rule).shape != number)
      return fail(Fault::bad_shape);
    std::uint32_t last = 0;  // argv[0] is not a template
    for (; next_template_ - s.first_template < s.template_count; ++next_template_) {
      const std::uint32_t token = v_.template_at(next_template_).token;
      if (token <= last || token >= s.argc) return fail(Fault::bad_shape);
      last = token;
    }
    return true;
  }
  // By argc, then template by template; a record read as one number is its token, then its piece_bytes.
  bool in_order(const Shape& a, const Shape& b) const {
    if (a.argc != b.argc) return a.argc < b.argc;
    for (std::size_t i = 0; i < a.template_count && i < b.template_count; ++i) {
      const auto left = v_.record<std::uint64_t>(BlobView::kTemplates, a.first_template + i);
      const auto right = v_.record<std::uint64_t>(BlobView::kTemplates, b.first_template + i);
      if (left != right) return left < right;
    }
    return a.template_count < b.template_count;
  }

  bool options() {
    for (std::uint32_t i = 0; i < h_.option_count; ++i) {
      Options o = v_.record<Options>(BlobView::kOptions, i);
      if ((o.flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
      if ((o.flags & kOptionHasSha256) == 0 && std::memcmp(o.sha256, kNoOptions.sha256, sizeof o.sha256) != 0)
        return fail(Fault::bad_padding);
      if (!path(o.exe) || !text(o.reason) || !path(o.cwd) || !require(o.first_item == next_item_, Fault::bad_item) ||
          !list(o.env_count, is_env_pair) || !list(o.writable_count, is_path) || !list(o.allow_count, is_example) ||
          !list(o.deny_count, is_example))
        return false;
      o.first_item = 0;  // set or not, it says nothing
      if (std::memcmp(&o, &kNoOptions, sizeof o) == 0 || ((o.flags & kOptionHasWritable) == 0 && o.writable_count != 0))
        return fail(Fault::bad_options);
    }
    return true;
  }

  // Each lookup of the index waits for memory: it is asked for while the rules that follow are read.
  bool rules() {
    if (!is_utf8({v_.sections_[BlobView::kPieces], h_.piece_bytes})) return fail(Fault::bad_piece);
    constexpr std::uint32_t kAtOnce = 16;
    std::uint64_t hashes[kAtOnce];
    for (std::uint32_t from = 0, to; from < h_.rule_count; from = to) {
      to = from + std::min(kAtOnce, h_.rule_count - from);
      for (std::uint32_t i = from; i < to; ++i) {
        std::uint64_t& hash = hashes[i - from];
        if (!rule(i, hash)) return false;
        __builtin_prefetch(v_.home(hash));
      }
      for (std::uint32_t i = from; i < to; ++i)
        if (!indexed(h_.pair_count + i + 1, hashes[i - from])) return fail(Fault::bad_slot);
    }
    return require(next_options_ == h_.option_count, Fault::bad_rule);
  }

  bool rule(std::uint32_t i, std::uint64_t& hash) {
    const Rule rule = v_.rule(i);
    if (next_entry_ < h_.entry_count && v_.entry(next_entry_).first_rule == i)
      owner_ = v_.pair(v_.entry(next_entry_++).pair);
    if (rule.entry + 1 != next_entry_ || rule.shape - owner_.first_shape >= owner_.shape_count ||
        v_.shape(rule.shape).first_rule > i || (rule.options != kNone && rule.options != next_options_++))
      return fail(Fault::bad_rule);
    const std::uint32_t end = i + 1 < h_.rule_count ? v_.rule(i + 1).pieces : h_.piece_bytes;
    if (rule.pieces != next_piece_ || end < next_piece_ || end > h_.piece_bytes) return fail(Fault::bad_piece);
    next_piece_ = end;
    const Shape shape = v_.shape(rule.shape);
    const Bytes block = v_.pieces(i);
    if (!is_argv(block, shape.argc) || !is_program(block)) return fail(Fault::bad_piece);
    for (Bytes rest = block; rest.size() > kMaxTokenBytes;)
      if (next_token(rest).size() > kMaxTokenBytes) return fail(Fault::bad_piece);
    const auto fits = [](Template t, Bytes piece) {
      return piece.size() == t.piece_bytes && (piece.empty() || piece.back() == '/');
    };
    hash = rule.shape;
    const auto add = [&](Bytes run) { hash = run.empty() ? hash : hash_bytes(hash, run); };
    return require(v_.each_run(shape, block, fits, add), Fault::bad_piece);
  }

  // No more slots are taken than there are keys, so one is empty; and none of 256 in a row: that bounds a lookup.
  bool slots() {
    std::uint32_t in_a_row = 0, longest = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{h_.slot_count} + kMaxProbes; ++i) {  // going round at the end
      const std::uint32_t taken = load_u64(v_.home(i)) != 0 ? 1 : 0;
      occupied_ += i < h_.slot_count ? taken : 0;
      in_a_row = (in_a_row + 1) * taken;
      longest = std::max(longest, in_a_row);
    }
    return require(longest < kMaxProbes && occupied_ <= h_.pair_count + h_.rule_count, Fault::bad_slot);
  }

  // On the way from its home to the slot of a key there are lower numbers only, or an equal rule comes first. With
  // nothing else in it, the index is what inserting the keys in order gives.
  bool indexed(std::uint32_t number, std::uint64_t hash) {
    const std::uint32_t pairs = h_.pair_count;
    const Slot found = v_.first_slot(hash, [&](Slot slot) {
      if (slot.number >= number) return true;
      const std::uint32_t earlier = slot.number - 1 - pairs, rule = number - 1 - pairs;
      return slot.tag == hash >> 32 && slot.number > pairs && v_.rule(earlier).shape == v_.rule(rule).shape &&
             as_text(v_.pieces(earlier)) == as_text(v_.pieces(rule));
    });
    if (found.number != number) return found.number != 0 && found.number < number;
    ++indexed_;
    return found.tag == hash >> 32;
  }

  bool nothing_left() {
    return require(occupied_ == indexed_, Fault::bad_slot) && require(next_item_ == h_.item_count, Fault::bad_item) &&
           require(next_text_ == h_.text_bytes, Fault::bad_text);
  }

  BlobView v_;
  const Header& h_ = v_.header_;
  Pair owner_ = {};  // of the rule at hand
  Fault fault_ = Fault::none;
  std::uint32_t next_text_ = 0, next_item_ = 0, next_template_ = 0, next_entry_ = 0, next_options_ = 0, next_piece_ = 0,
                occupied_ = 0, indexed_ = 0;
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

}  // namespace x0x
