// BlobView::open: one linear pass over a table that accepts nothing but what the compiler writes.
//
// Section by section, each running counter (next text, next item, next shape, next piece) is compared with what the
// record says, so nothing overlaps, nothing is left over and nothing is there twice.
#include <bit>

#include "enforcer/blob_view.hpp"

namespace x0x {

using namespace blob;

namespace {

bool is_absolute(Bytes path) { return !path.empty() && path[0] == '/'; }
bool has(Bytes bytes, char c) { return as_text(bytes).find(c) != std::string_view::npos; }
bool is_name(Bytes item) { return !item.empty() && !has(item, '\0'); }
bool is_env_pair(Bytes item) { return is_name(item) && item[0] != '=' && has(item, '='); }
bool is_path(Bytes item) { return is_absolute(item) && !has(item, '\0'); }
bool is_argv(Bytes item) { return item.empty() || item.back() == 0; }  // each token and its NUL

}  // namespace

class Validator {
 public:
  explicit Validator(Bytes payload) { v_.payload_ = payload; }

  Result<BlobView> run() {
    if (lay_out() && header() && entries() && pairs() && options() && rules() && nothing_left()) return v_;
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
    const auto section = [&c](std::uint64_t count, std::size_t record_bytes) {
      return c.take(count * record_bytes).data();
    };
    v_.pairs_ = section(h_.pair_count, sizeof(Pair));
    v_.shapes_ = section(h_.shape_count, sizeof(Shape));
    v_.templates_ = section(h_.template_count, sizeof(Template));
    v_.entries_ = section(h_.entry_count, sizeof(Entry));
    v_.rules_ = section(h_.rule_count, sizeof(Rule));
    v_.options_ = section(h_.option_count, sizeof(Options));
    v_.items_ = section(h_.item_count, sizeof(TextRef));
    v_.slots_ = section(h_.slot_count, sizeof(blob::Slot));
    v_.pieces_ = section(h_.piece_bytes, 1);
    v_.texts_ = section(h_.text_bytes, 1);
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
    const Bytes left(v_.texts_ + next_text_, h_.text_bytes - next_text_);
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
      if (!any_text(BlobView::record<TextRef>(v_.items_, next_item_))) return false;
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
    for (std::uint32_t i = 0; i < h_.pair_count; ++i, ++indexed_) {
      const Pair pair = v_.pair(i);
      if (pair.first_shape != next_shape || pair.shape_count == 0 || pair.shape_count > h_.shape_count - next_shape)
        return fail(Fault::bad_pair);
      if (pair.shape_count > kMaxShapes) return fail(Fault::too_many_shapes);
      for (; next_shape - pair.first_shape < pair.shape_count; ++next_shape) {
        if (!shape(next_shape)) return false;
        if (next_shape > pair.first_shape && !in_order(v_.shape(next_shape - 1), v_.shape(next_shape)))
          return fail(Fault::bad_order);
      }
      if (v_.find_pair(pair.key, i + 1) != i) return fail(Fault::bad_slot);
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
      const auto left = BlobView::record<std::uint64_t>(v_.templates_, a.first_template + i);
      const auto right = BlobView::record<std::uint64_t>(v_.templates_, b.first_template + i);
      if (left != right) return left < right;
    }
    return a.template_count < b.template_count;
  }

  bool options() {
    constexpr Options kUnset{};
    for (std::uint32_t i = 0; i < h_.option_count; ++i) {
      Options o = BlobView::record<Options>(v_.options_, i);
      if ((o.flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
      if ((o.flags & kOptionHasSha256) == 0 && std::memcmp(o.sha256, kUnset.sha256, sizeof o.sha256) != 0)
        return fail(Fault::bad_padding);
      if (!path(o.exe) || !text(o.reason) || !path(o.cwd) || !require(o.first_item == next_item_, Fault::bad_item) ||
          !list(o.env_count, is_env_pair) || !list(o.writable_count, is_path) || !list(o.allow_count, is_argv) ||
          !list(o.deny_count, is_argv))
        return false;
      o.first_item = 0;  // set or not, it says nothing
      if (std::memcmp(&o, &kUnset, sizeof o) == 0 || ((o.flags & kOptionHasWritable) == 0 && o.writable_count != 0))
        return fail(Fault::bad_options);
    }
    return true;
  }

  bool rules() {
    const std::uint32_t bytes = h_.piece_bytes;
    if (has_forbidden_byte({v_.pieces_, bytes}) || !is_utf8({v_.pieces_, bytes})) return fail(Fault::bad_piece);
    std::uint32_t entry = 0, next_options = 0, next_piece = 0;
    for (std::uint32_t i = 0; i < h_.rule_count; ++i) {
      const Rule rule = v_.rule(i);
      if (entry + 1 < h_.entry_count && v_.entry(entry + 1).first_rule == i) ++entry;
      const Pair pair = v_.pair(v_.entry(entry).pair);
      if (rule.entry != entry || rule.shape - pair.first_shape >= pair.shape_count ||
          v_.shape(rule.shape).first_rule > i || (rule.options != kNone && rule.options != next_options++))
        return fail(Fault::bad_rule);
      const std::uint32_t end = i + 1 < h_.rule_count ? v_.rule(i + 1).pieces : bytes;
      if (rule.pieces != next_piece || end < next_piece || end > bytes || !pieces(v_.shape(rule.shape), v_.pieces(i)))
        return fail(Fault::bad_piece);
      next_piece = end;
      const std::uint32_t found = v_.find_rule(rule.shape, argv_, h_.pair_count + i + 1);
      if (found == kNone) return fail(Fault::bad_slot);
      indexed_ += found == i ? 1 : 0;  // or an equal rule comes first
    }
    return require(next_options == h_.option_count, Fault::bad_rule);
  }

  bool pieces(const Shape& shape, Bytes block) {
    if (!argv_.split(block, shape.argc)) return false;
    const Bytes program = argv_.token(0);  // a name or an absolute path
    if (program.empty() || (has(program, '/') && !is_absolute(program))) return false;
    for (std::uint32_t i = 0; i < shape.template_count; ++i) {
      const Template t = v_.template_at(shape.first_template + i);
      const Bytes piece = argv_.token(t.token);
      if (piece.size() != t.piece_bytes || (!piece.empty() && piece.back() != '/')) return false;
    }
    for (std::uint32_t i = 0; block.size() > kMaxTokenBytes && i < shape.argc; ++i)
      if (argv_.token(i).size() > kMaxTokenBytes) return false;
    return true;
  }

  // Each pair, and each rule that equals no earlier one, was found in the index on a way that meets lower numbers only:
  // with nothing else in it, it is what inserting them in order gives.
  bool nothing_left() {
    std::uint32_t occupied = 0;
    for (std::size_t i = 0; i < h_.slot_count; ++i)
      occupied += BlobView::record<std::uint64_t>(v_.slots_, i) != 0 ? 1 : 0;
    return require(occupied == indexed_, Fault::bad_slot) && require(next_item_ == h_.item_count, Fault::bad_item) &&
           require(next_text_ == h_.text_bytes, Fault::bad_text);
  }

  BlobView v_;
  const Header& h_ = v_.header_;
  Argv argv_;  // the pieces at hand
  Fault fault_ = Fault::none;
  std::uint32_t next_text_ = 0, next_item_ = 0, next_template_ = 0, indexed_ = 0;
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

}  // namespace x0x
