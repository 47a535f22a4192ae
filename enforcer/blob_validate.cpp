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
  std::uint32_t count(std::size_t field) const { return v_.header_u32(field); }

  // Magic, version, and where each section lies. Sizes follow from counts, so sections cannot overlap.
  bool lay_out() {
    Cursor c(v_.payload_);
    const std::uint8_t* header = c.take(kHeaderBytes).data();
    if (c.failed()) return fail(Fault::truncated);
    if (std::memcmp(header + kHeaderMagic, kMagic, 8) != 0) return fail(Fault::bad_magic);
    if (std::memcmp(header + kHeaderPurpose, kPurpose, 8) != 0) return fail(Fault::wrong_purpose);
    if (count(kHeaderFormatVersion) != kFormatVersion) return fail(Fault::unknown_version);
    const auto section = [&](std::size_t count_field, std::size_t record_bytes) {
      return c.take(std::uint64_t{count(count_field)} * record_bytes).data();
    };
    v_.pairs_ = section(kHeaderPairCount, kPairRecordBytes);
    v_.shapes_ = section(kHeaderShapeCount, kShapeBytes);
    v_.templates_ = section(kHeaderTemplateCount, kTemplateBytes);
    v_.entries_ = section(kHeaderEntryCount, kEntryBytes);
    v_.rules_ = section(kHeaderRuleCount, kRuleBytes);
    v_.options_ = section(kHeaderOptionCount, kOptionsBytes);
    v_.items_ = section(kHeaderItemCount, kTextRefBytes);
    v_.slots_ = section(kHeaderSlotCount, kSlotBytes);
    v_.pieces_ = section(kHeaderPieceBytes, 1);
    v_.texts_ = section(kHeaderTextBytes, 1);
    if (c.failed()) return fail(Fault::truncated);
    return require(c.at_end(), Fault::trailing_bytes);
  }

  bool header() {
    if ((count(kHeaderFlags) & ~kFlagEnabled) != 0) return fail(Fault::bad_flags);
    if (v_.not_before() != 0 && v_.expires() != 0 && v_.not_before() >= v_.expires()) return fail(Fault::bad_window);
    const Caps caps = v_.global_caps();
    if (caps.stdout_bytes == 0 || caps.stderr_bytes == 0 || caps.stdin_bytes == 0 || caps.duration_secs == 0 ||
        caps.warn_stdout_bytes > caps.stdout_bytes || caps.warn_stderr_bytes > caps.stderr_bytes ||
        caps.warn_duration_secs > caps.duration_secs || v_.max_concurrent_per_agent() == 0 ||
        v_.max_concurrent_per_agent() > v_.max_concurrent_total())
      return fail(Fault::bad_cap);
    if (v_.slot_count() != std::bit_ceil((std::uint64_t{v_.pair_count()} + v_.rule_count()) * 2) ||
        (v_.entry_count() == 0) != (v_.rule_count() == 0))
      return fail(Fault::bad_count);
    const std::uint8_t* p = v_.payload_.data();
    return text(p + kHeaderName) && path(p + kHeaderDefaultCwd) && path(p + kHeaderAuditLogPath) &&
           require(v_.audit_log_path().present(), Fault::bad_path) && text(p + kHeaderAuditTasklistId) &&
           list(v_.audience_count(), is_name);
  }

  // The next text of the fixed order, or an absent one.
  bool any_text(const std::uint8_t* ref) {
    const std::uint32_t offset = load_u32(ref), length = load_u32(ref + 4);
    if (offset == kNone) return require(length == 0, Fault::bad_text);
    const Bytes left(v_.texts_ + next_text_, count(kHeaderTextBytes) - next_text_);
    if (offset != next_text_ || length >= left.size() || left[length] != 0) return fail(Fault::bad_text);
    next_text_ += length + 1;
    return require(is_utf8(left.first(length)), Fault::bad_text);
  }
  bool text(const std::uint8_t* ref) {
    return any_text(ref) && require(!has(v_.text(ref).bytes, '\0'), Fault::bad_text);
  }
  bool path(const std::uint8_t* ref) {
    return text(ref) && require(!v_.text(ref).present() || is_absolute(v_.text(ref).bytes), Fault::bad_path);
  }

  // The next items: sorted, each there once.
  bool list(std::uint32_t items, bool (*well_formed)(Bytes)) {
    if (items > count(kHeaderItemCount) - next_item_) return fail(Fault::bad_item);
    for (std::uint32_t i = 0; i < items; ++i, ++next_item_) {
      if (!any_text(v_.items_ + std::size_t{next_item_} * kTextRefBytes)) return false;
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
    for (std::uint32_t i = 0; i < v_.entry_count(); ++i) {
      const std::uint8_t* p = v_.entries_ + std::size_t{i} * kEntryBytes;
      const std::uint32_t pair = load_u32(p + kEntryPair), first_rule = load_u32(p + kEntryFirstRule);
      if (pair > next_pair || first_rule < next_rule || first_rule >= v_.rule_count() || (i == 0 && first_rule != 0))
        return fail(Fault::bad_entry);
      next_pair += pair == next_pair ? 1 : 0;
      next_rule = first_rule + 1;
      if (!text(p + kEntryDescription)) return false;
    }
    return require(next_pair == v_.pair_count(), Fault::bad_pair);
  }

  bool pairs() {
    std::uint32_t next_shape = 0;
    for (std::uint32_t i = 0; i < v_.pair_count(); ++i, ++indexed_) {
      const Pair pair = v_.pair(i);
      if (pair.first_shape != next_shape || pair.shape_count == 0 || pair.shape_count > v_.shape_count() - next_shape)
        return fail(Fault::bad_pair);
      if (pair.shape_count > kMaxShapes) return fail(Fault::too_many_shapes);
      for (; next_shape - pair.first_shape < pair.shape_count; ++next_shape) {
        if (!shape(next_shape)) return false;
        if (next_shape > pair.first_shape && !in_order(v_.shape(next_shape - 1), v_.shape(next_shape)))
          return fail(Fault::bad_order);
      }
      if (v_.find_pair(pair.key, i + 1) != i) return fail(Fault::bad_slot);
    }
    return require(next_shape == v_.shape_count() && next_template_ == count(kHeaderTemplateCount), Fault::bad_shape);
  }

  bool shape(std::uint32_t number) {
    const Shape s = v_.shape(number);
    if (s.argc == 0 || s.argc > kMaxArgc || s.first_template != next_template_ ||
        s.template_count > count(kHeaderTemplateCount) - next_template_ || s.first_rule >= v_.rule_count() ||
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
      const std::uint64_t left = load_u64(v_.templates_ + (a.first_template + i) * kTemplateBytes);
      const std::uint64_t right = load_u64(v_.templates_ + (b.first_template + i) * kTemplateBytes);
      if (left != right) return left < right;
    }
    return a.template_count < b.template_count;
  }

  bool options() {
    for (std::uint32_t i = 0; i < count(kHeaderOptionCount); ++i) {
      const std::uint8_t* p = v_.options_ + std::size_t{i} * kOptionsBytes;
      const std::uint32_t flags = load_u32(p + kOptionsFlags);
      if ((flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
      std::uint64_t sha256 = 0, set = flags;  // anything at all
      for (std::size_t field = kOptionsSha256; field < kOptionsExe; field += 8) sha256 |= load_u64(p + field);
      if ((flags & kOptionHasSha256) == 0 && sha256 != 0) return fail(Fault::bad_padding);
      for (std::size_t field = kOptionsEnvCount; field < kOptionsFirstItem; field += 4) set |= load_u32(p + field);
      for (std::size_t field = kOptionsMaxDurationSecs; field < kOptionsBytes; field += 8) set |= load_u64(p + field);
      for (std::size_t field = kOptionsExe; field < kOptionsMaxDurationSecs; field += kTextRefBytes)
        set |= load_u32(p + field) != kNone ? 1 : 0;
      if (set == 0 || ((flags & kOptionHasWritable) == 0 && load_u32(p + kOptionsWritableCount) != 0))
        return fail(Fault::bad_options);
      if (!path(p + kOptionsExe) || !text(p + kOptionsReason) || !path(p + kOptionsCwd) ||
          !require(load_u32(p + kOptionsFirstItem) == next_item_, Fault::bad_item) ||
          !list(load_u32(p + kOptionsEnvCount), is_env_pair) || !list(load_u32(p + kOptionsWritableCount), is_path) ||
          !list(load_u32(p + kOptionsAllowCount), is_argv) || !list(load_u32(p + kOptionsDenyCount), is_argv))
        return false;
    }
    return true;
  }

  bool rules() {
    const std::uint32_t bytes = count(kHeaderPieceBytes);
    if (has_forbidden_byte({v_.pieces_, bytes}) || !is_utf8({v_.pieces_, bytes})) return fail(Fault::bad_piece);
    std::uint32_t entry = 0, next_options = 0, next_piece = 0;
    for (std::uint32_t i = 0; i < v_.rule_count(); ++i) {
      const Rule rule = v_.rule(i);
      if (entry + 1 < v_.entry_count() && v_.entry(entry + 1).first_rule == i) ++entry;
      const Pair pair = v_.pair(v_.entry(entry).pair);
      if (rule.entry != entry || rule.shape - pair.first_shape >= pair.shape_count ||
          v_.shape(rule.shape).first_rule > i || (rule.options != kNone && rule.options != next_options++))
        return fail(Fault::bad_rule);
      const std::uint32_t end = i + 1 < v_.rule_count() ? v_.rule(i + 1).pieces : bytes;
      if (rule.pieces != next_piece || end < next_piece || end > bytes || !pieces(v_.shape(rule.shape), v_.pieces(i)))
        return fail(Fault::bad_piece);
      next_piece = end;
      const std::uint32_t found = v_.find_rule(rule.shape, argv_, v_.pair_count() + i + 1);
      if (found == kNone) return fail(Fault::bad_slot);
      indexed_ += found == i ? 1 : 0;  // or an equal rule comes first
    }
    return require(next_options == count(kHeaderOptionCount), Fault::bad_rule);
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
    for (std::size_t i = 0; i < v_.slot_count(); ++i) occupied += load_u64(v_.slots_ + i * kSlotBytes) != 0 ? 1 : 0;
    return require(occupied == indexed_, Fault::bad_slot) &&
           require(next_item_ == count(kHeaderItemCount), Fault::bad_item) &&
           require(next_text_ == count(kHeaderTextBytes), Fault::bad_text);
  }

  BlobView v_;
  Argv argv_;  // the pieces at hand
  Fault fault_ = Fault::none;
  std::uint32_t next_text_ = 0, next_item_ = 0, next_template_ = 0, indexed_ = 0;
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

}  // namespace x0x
