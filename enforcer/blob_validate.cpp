// BlobView::open: one linear pass over a table that accepts nothing but what the compiler writes.
//
// Section by section, each running counter (next text, next item, next shape, next piece) is compared with what the
// record says, so nothing overlaps, nothing is left over and nothing is there twice.
#include <algorithm>
#include <bit>

#include "enforcer/blob_view.hpp"

namespace x0x {

using namespace blob;

static bool has(Bytes bytes, char c) { return as_text(bytes).find(c) != std::string_view::npos; }
static bool is_absolute(Bytes path) { return as_text(path).starts_with('/'); }
static bool is_name(Bytes item) { return !item.empty() && !has(item, '\0'); }
static bool is_env_pair(Bytes item) { return is_name(item) && item[0] != '=' && has(item, '='); }
static bool is_path(Bytes item) { return is_absolute(item) && !has(item, '\0'); }
static bool is_example(Bytes item) { return item.empty() || item.back() == 0; }  // each token and its NUL
static bool is_program(Bytes name) { return is_absolute(name) || (!name.empty() && !has(name, '/')); }
static bool is_piece(Template t, Bytes piece) {
  return piece.size() == t.piece_bytes && (piece.empty() || piece.back() == '/');
}

class Validator : BlobView {
 public:
  explicit Validator(Bytes payload) { payload_ = payload; }

  Result<BlobView> run() {
    const bool valid = lay_out() && check_header() && check_slots() && check_entries() && check_pairs() &&
                       check_options() && check_rules() && nothing_left();
    return valid ? Result<BlobView>(*this) : fault_;
  }

 private:
  bool require(bool holds, Fault fault) {
    if (!holds) fault_ = fault;
    return holds;
  }
  bool fail(Fault fault) { return require(false, fault); }

  // Magic, version, and where each section lies. Sizes follow from counts, so sections cannot overlap.
  bool lay_out() {
    Cursor c(payload_);
    const Bytes header = c.take(kHeaderBytes);
    if (c.failed()) return fail(Fault::truncated);
    std::memcpy(static_cast<void*>(&header_), header.data(), kHeaderBytes);
    if (std::memcmp(header_.magic, kMagic, 8) != 0) return fail(Fault::bad_magic);
    if (std::memcmp(header_.purpose, kPurpose, 8) != 0) return fail(Fault::wrong_purpose);
    if (header_.format_version != kFormatVersion) return fail(Fault::unknown_version);
    Cursor counts(header.subspan(offsetof(Header, pair_count)));
    for (std::size_t i = 0; i < kSections; ++i) sections_[i] = c.take(counts.u32() * kRecordBytes[i]).data();
    if (c.failed()) return fail(Fault::truncated);
    return require(c.at_end(), Fault::trailing_bytes);
  }

  bool check_header() {
    const Header& h = header_;
    const Caps& caps = h.caps;
    if ((h.flags & ~kFlagEnabled) != 0) return fail(Fault::bad_flags);
    if (h.not_before != 0 && h.expires != 0 && h.not_before >= h.expires) return fail(Fault::bad_window);
    if (caps.max_stdout_bytes == 0 || caps.max_stderr_bytes == 0 || caps.max_stdin_bytes == 0 ||
        caps.max_duration_secs == 0 || caps.warn_stdout_bytes > caps.max_stdout_bytes ||
        caps.warn_stderr_bytes > caps.max_stderr_bytes || caps.warn_duration_secs > caps.max_duration_secs ||
        h.max_concurrent_per_agent == 0 || h.max_concurrent_per_agent > h.max_concurrent_total)
      return fail(Fault::bad_cap);
    if (h.slot_count != std::bit_ceil((std::uint64_t{h.pair_count} + h.rule_count) * 2) ||
        (h.entry_count == 0) != (h.rule_count == 0))
      return fail(Fault::bad_count);
    return check_text(h.name) && check_path(h.default_cwd) && check_path(h.audit_log_path) &&
           require(text(h.audit_log_path).present(), Fault::bad_path) && check_text(h.audit_tasklist_id) &&
           check_list(h.audience_count, is_name);
  }

  // The next text of the fixed order, or an absent one.
  bool check_any_text(TextRef ref) {
    if (ref.offset == kNone) return require(ref.length == 0, Fault::bad_text);
    const Bytes left(sections_[kTexts] + next_text_, header_.text_bytes - next_text_);
    if (ref.offset != next_text_ || ref.length >= left.size() || left[ref.length] != 0) return fail(Fault::bad_text);
    next_text_ += ref.length + 1;
    return require(is_utf8(left.first(ref.length)), Fault::bad_text);
  }
  bool check_text(TextRef ref) { return check_any_text(ref) && require(!has(text(ref).bytes, '\0'), Fault::bad_text); }
  bool check_path(TextRef ref) {
    return check_text(ref) && require(!text(ref).present() || is_absolute(text(ref).bytes), Fault::bad_path);
  }

  // The next items: sorted, each there once.
  bool check_list(std::uint32_t items, bool (*well_formed)(Bytes)) {
    if (items > header_.item_count - next_item_) return fail(Fault::bad_item);
    for (std::uint32_t i = 0; i < items; ++i, ++next_item_) {
      if (!check_any_text(record<TextRef>(kItems, next_item_))) return false;
      const Text next = item(next_item_);
      if (!next.present() || !well_formed(next.bytes) ||
          (i > 0 && as_text(item(next_item_ - 1).bytes) >= as_text(next.bytes)))
        return fail(Fault::bad_item);
    }
    return true;
  }

  // No more slots are taken than there are keys, so one is empty; and never 256 in a row, which bounds a lookup.
  bool check_slots() {
    std::uint32_t in_a_row = 0, longest = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{header_.slot_count} + kMaxProbes; ++i) {  // going round at the end
      const std::uint32_t taken = load_u64(home(i)) != 0 ? 1 : 0;
      taken_ += i < header_.slot_count ? taken : 0;
      in_a_row = (in_a_row + 1) * taken;
      longest = std::max(longest, in_a_row);
    }
    return require(longest < kMaxProbes && taken_ <= header_.pair_count + header_.rule_count, Fault::bad_slot);
  }

  // On the way from its home to the slot of a key there are lower numbers only, or an equal rule comes first. With
  // nothing else in it, the index is what inserting the keys in order gives.
  bool is_indexed(std::uint32_t number, std::uint64_t hash) {
    const std::uint32_t first_rule = header_.pair_count + 1, own = number - first_rule;
    const Slot found = first_slot(hash, [&](Slot slot) {
      if (slot.number >= number) return true;
      const std::uint32_t other = slot.number - first_rule;
      return slot.tag == hash >> 32 && slot.number >= first_rule && rule(other).shape == rule(own).shape &&
             as_text(pieces(other)) == as_text(pieces(own));
    });
    if (found.number != number) return found.number != 0 && found.number < number;
    ++indexed_;
    return found.tag == hash >> 32;
  }

  // Entries own the rules in order, each at least one; a pair is numbered when an entry first names it.
  bool check_entries() {
    std::uint32_t next_pair = 0, next_rule = 0;
    for (std::uint32_t i = 0; i < header_.entry_count; ++i) {
      const Entry e = entry(i);
      if (e.pair > next_pair || e.first_rule < next_rule || e.first_rule >= header_.rule_count ||
          (i == 0 && e.first_rule != 0))
        return fail(Fault::bad_entry);
      next_pair += e.pair == next_pair ? 1 : 0;
      next_rule = e.first_rule + 1;
      if (!check_text(e.description)) return false;
    }
    return require(next_pair == header_.pair_count, Fault::bad_pair);
  }

  bool check_pairs() {
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < header_.pair_count; ++i) {
      const Pair p = pair(i);
      if (p.first_shape != next || p.shape_count == 0 || p.shape_count > header_.shape_count - next)
        return fail(Fault::bad_pair);
      if (p.shape_count > kMaxShapes) return fail(Fault::too_many_shapes);
      for (; next - p.first_shape < p.shape_count; ++next) {
        if (!check_shape(next)) return false;
        if (next > p.first_shape && !in_order(shape(next - 1), shape(next))) return fail(Fault::bad_order);
      }
      if (!is_indexed(i + 1, hash_bytes(kHashPair, p.key)) || find_pair(p.key) != i) return fail(Fault::bad_slot);
    }
    return require(next == header_.shape_count && next_template_ == header_.template_count, Fault::bad_shape);
  }

  bool check_shape(std::uint32_t number) {
    const Shape s = shape(number);
    if (s.argc == 0 || s.argc > kMaxArgc || s.first_template != next_template_ ||
        s.template_count > header_.template_count - next_template_ || s.first_rule >= header_.rule_count ||
        rule(s.first_rule).shape != number)
      return fail(Fault::bad_shape);
    std::uint32_t last = 0;  // argv[0] is not a template
    for (; next_template_ - s.first_template < s.template_count; ++next_template_) {
      const std::uint32_t token = template_at(next_template_).token;
      if (token <= last || token >= s.argc) return fail(Fault::bad_shape);
      last = token;
    }
    return true;
  }
  // By argc, then template by template; a record read as one number is its token, then its piece_bytes.
  bool in_order(const Shape& a, const Shape& b) const {
    if (a.argc != b.argc) return a.argc < b.argc;
    for (std::size_t i = 0; i < a.template_count && i < b.template_count; ++i) {
      const auto left = record<std::uint64_t>(kTemplates, a.first_template + i);
      const auto right = record<std::uint64_t>(kTemplates, b.first_template + i);
      if (left != right) return left < right;
    }
    return a.template_count < b.template_count;
  }

  bool check_options() {
    for (std::uint32_t i = 0; i < header_.option_count; ++i) {
      Options o = record<Options>(kOptions, i);
      if ((o.flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
      if ((o.flags & kOptionHasSha256) == 0 && std::memcmp(o.sha256, kNoOptions.sha256, sizeof o.sha256) != 0)
        return fail(Fault::bad_padding);
      if (!check_path(o.exe) || !check_text(o.reason) || !check_path(o.cwd) ||
          !require(o.first_item == next_item_, Fault::bad_item) || !check_list(o.env_count, is_env_pair) ||
          !check_list(o.writable_count, is_path) || !check_list(o.allow_count, is_example) ||
          !check_list(o.deny_count, is_example))
        return false;
      o.first_item = 0;  // set or not, it says nothing
      if (std::memcmp(&o, &kNoOptions, sizeof o) == 0 || ((o.flags & kOptionHasWritable) == 0 && o.writable_count != 0))
        return fail(Fault::bad_options);
    }
    return true;
  }

  // Sixteen at a time: a lookup of the index waits for memory, which is asked for while the others are read.
  bool check_rules() {
    std::uint64_t hashes[16];
    for (std::uint32_t i = 0, looked_up = 0, piece = 0; i < header_.rule_count; ++i) {
      if (!check_rule(i, hashes[i % 16])) return false;
      __builtin_prefetch(home(hashes[i % 16]));
      if (i % 16 != 15 && i + 1 != header_.rule_count) continue;
      if (!is_utf8({sections_[kPieces] + piece, next_piece_ - piece})) return fail(Fault::bad_piece);
      piece = next_piece_;
      for (; looked_up <= i; ++looked_up)
        if (!is_indexed(header_.pair_count + 1 + looked_up, hashes[looked_up % 16])) return fail(Fault::bad_slot);
    }
    return require(next_options_ == header_.option_count, Fault::bad_rule);
  }

  bool check_rule(std::uint32_t i, std::uint64_t& hash) {
    const Rule r = rule(i);
    if (next_entry_ < header_.entry_count && entry(next_entry_).first_rule == i)
      owner_ = pair(entry(next_entry_++).pair);
    if (r.entry + 1 != next_entry_ || r.shape - owner_.first_shape >= owner_.shape_count ||
        shape(r.shape).first_rule > i || (r.options != kNone && r.options != next_options_++))
      return fail(Fault::bad_rule);
    const std::uint32_t end = i + 1 < header_.rule_count ? rule(i + 1).pieces : header_.piece_bytes;
    if (r.pieces != next_piece_ || end < next_piece_ || end > header_.piece_bytes) return fail(Fault::bad_piece);
    next_piece_ = end;
    Bytes rest = pieces(i);
    hash = r.shape;
    const auto add = [&](Bytes run) { hash = run.empty() ? hash : hash_bytes(hash, run); };
    if (!is_argv(rest, shape(r.shape).argc) || !each_run(shape(r.shape), rest, is_piece, add) ||
        !is_program(next_token(rest)))
      return fail(Fault::bad_piece);
    for (rest = pieces(i); rest.size() > kMaxTokenBytes;)
      if (next_token(rest).size() > kMaxTokenBytes) return fail(Fault::bad_piece);
    return true;
  }

  bool nothing_left() {
    return require(taken_ == indexed_, Fault::bad_slot) && require(next_item_ == header_.item_count, Fault::bad_item) &&
           require(next_text_ == header_.text_bytes, Fault::bad_text);
  }

  Fault fault_ = Fault::none;
  Pair owner_ = {};  // of the rule at hand
  std::uint32_t next_text_ = 0, next_item_ = 0, next_template_ = 0, next_entry_ = 0, next_options_ = 0, next_piece_ = 0;
  std::uint32_t taken_ = 0, indexed_ = 0;  // slots
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

}  // namespace x0x
