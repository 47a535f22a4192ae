// BlobView::open, one linear pass over a table that accepts nothing but what the compiler writes; and what a rule's
// options and limits are after it.
//
// Every record names the next records of another section, and each section is used up: nothing overlaps, nothing is
// left over and nothing is there twice.
#include <algorithm>

#include "enforcer/blob_view.hpp"

namespace x0x {

using namespace blob;

static bool has(Bytes bytes, char c) { return as_text(bytes).find(c) != std::string_view::npos; }
static bool is_absolute(Bytes path) { return as_text(path).starts_with('/'); }
static bool has_no_nul(Bytes text) { return !has(text, '\0'); }
static bool is_name(Bytes item) { return !item.empty() && has_no_nul(item); }
static bool is_env_pair(Bytes item) { return is_name(item) && item[0] != '=' && has(item, '='); }
static bool is_path(Bytes path) { return is_absolute(path) && has_no_nul(path); }
static bool is_example(Bytes item) { return item.empty() || item.back() == 0; }  // each token and its NUL
static bool is_program(const char* name) { return *name == '/' || (*name != 0 && strchr(name, '/') == nullptr); }
static bool is_piece(Template t, Bytes piece) {
  return piece.size() == t.piece_bytes && (piece.empty() || piece.back() == '/');
}

class Validator : BlobView {
 public:
  explicit Validator(Bytes payload) { payload_ = payload; }

  Result<BlobView> run() {
    const bool valid = lay_out() && check_header() && check_pairs() && check_rules() && nothing_left();
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
    for (std::size_t i = 0; i < kSections; ++i) {
      left_[i] = load_u32(header.data() + offsetof(Header, pair_count) + i * sizeof(std::uint32_t));
      sections_[i] = c.take(left_[i] * kRecordBytes[i]).data();
    }
    if (c.failed()) return fail(Fault::truncated);
    return require(c.at_end(), Fault::trailing_bytes);
  }

  // The next `count` of a section's records, or of its bytes.
  bool take(Section section, std::uint32_t first, std::uint64_t count) {
    if (first != next_[section] || count > left_[section]) return false;
    next_[section] += static_cast<std::uint32_t>(count);
    left_[section] -= count;
    return true;
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
    if (!is_utf8({sections_[kTexts], h.text_bytes})) return fail(Fault::bad_text);
    if (!is_utf8({sections_[kPieces], h.piece_bytes})) return fail(Fault::bad_piece);
    if (h.audit_log_path.offset == kNone) return fail(Fault::bad_path);
    return check_text(h.name) && check_path(h.default_cwd) && check_path(h.audit_log_path) &&
           check_text(h.audit_tasklist_id) && check_list(h.audience_count, is_name);
  }

  // The next text, or an absent one. Where a text ends is the end of a character: their section is UTF-8.
  bool check_as(TextRef ref, bool (*is_valid)(Bytes), Fault fault) {
    if (ref.offset == kNone) return require(ref.length == 0, Fault::bad_text);
    if (!take(kTexts, ref.offset, std::uint64_t{ref.length} + 1) || text(ref).c_str()[ref.length] != 0)
      return fail(Fault::bad_text);
    return require(is_valid(text(ref).bytes), fault);
  }
  bool check_text(TextRef ref) { return check_as(ref, has_no_nul, Fault::bad_text); }
  bool check_path(TextRef ref) { return check_as(ref, is_path, Fault::bad_path); }

  // The next items: sorted, each there once.
  bool check_list(std::uint32_t items, bool (*is_valid)(Bytes)) {
    const std::uint32_t first = next_[kItems];
    if (!take(kItems, first, items)) return fail(Fault::bad_item);
    for (std::uint32_t i = first; i < next_[kItems]; ++i) {
      if (!check_as(record<TextRef>(kItems, i), is_valid, Fault::bad_item)) return false;
      if (!item(i).present() || (i > first && as_text(item(i - 1).bytes) >= as_text(item(i).bytes)))
        return fail(Fault::bad_item);
    }
    return true;
  }

  bool check_pairs() {
    const Group<Pair> all = pairs();
    for (std::uint32_t i = 0, start = 0; take(kPairs, i, 1); ++i) {
      const Pair p = all.at(i);
      if (p.shape_count == 0 || !take(kShapes, p.first_shape, p.shape_count)) return fail(Fault::bad_pair);
      if (p.shape_count > kMaxShapes) return fail(Fault::too_many_shapes);
      for (std::uint32_t s = p.first_shape; s < next_[kShapes]; ++s) {
        if (!check_shape(shape(s))) return false;
        if (s > p.first_shape && templates(s - 1) >= templates(s)) return fail(Fault::bad_order);
      }
      if (!is_indexed(all, i, hash_pair(p.key), start)) return fail(Fault::bad_slot);
    }
    return true;
  }

  bool check_shape(const Shape& s) {
    if (!take(kTemplates, s.first_template, s.template_count) || s.pattern_count == 0 ||
        !take(kPatterns, s.first_pattern, s.pattern_count))
      return fail(Fault::bad_shape);
    const Group<Pattern> all = patterns(s);
    for (std::uint32_t i = 0, start = 0; i < all.count; ++i) {
      const Pattern p = all.at(i);
      std::uint64_t hash = 0;
      const auto add = [&](Bytes run) { hash = run.empty() ? hash : hash_bytes(hash, run); };
      if (!take(kPieces, p.pieces, p.piece_bytes) || !is_executable(pieces(p)) ||
          !each_run(s, pieces(p), is_piece, add))
        return fail(Fault::bad_piece);
      if (!is_indexed(all, i, hash, start)) return fail(Fault::bad_slot);
    }
    return true;
  }

  static bool is_executable(Bytes argv) {
    if (!is_argv(argv) || !is_program(as_text(argv).data())) return false;
    std::uint32_t argc = 0;  // what is short has neither too many tokens nor too long ones
    for (Bytes rest = argv; argv.size() > kMaxArgc && !rest.empty(); ++argc)
      if (next_token(rest).size() > kMaxTokenBytes) return false;
    return argc <= kMaxArgc;
  }

  std::string_view templates(std::uint32_t of) const {
    const Shape s = shape(of);
    return as_text({sections_[kTemplates] + s.first_template * sizeof(Template), s.template_count * sizeof(Template)});
  }
  static std::string_view bytes(const Pair& p) { return as_text(p.key); }
  std::string_view bytes(const Pattern& p) const { return as_text(pieces(p)); }

  // Record i of a group has the tag of its hash, comes after the one before it and says where slot i begins, which
  // `start` goes on to. No slot holds more than a lookup may try.
  template <class Record>
  bool is_indexed(const Group<Record>& group, std::uint32_t i, std::uint64_t hash, std::uint32_t& start) const {
    const Record own = group.at(i), before = group.at(i > 0 ? i - 1 : 0);
    while (start < group.count && group.slot_of(group.at(start).tag) < i) ++start;
    return own.tag == hash >> 32 && own.start == start && i - group.at(group.slot_of(own.tag)).start < kMaxProbes &&
           (i == 0 || before.tag < own.tag || (before.tag == own.tag && bytes(before) < bytes(own)));
  }

  // In file order. The rule that a pattern names is the first that has it.
  bool check_rules() {
    std::uint32_t used = 0;  // patterns, by the rules that they name
    for (std::uint32_t i = 0; take(kRules, i, 1); ++i) {
      const Rule r = rule(i);
      if (take(kEntries, r.entry, 1) && !check_entry(entry(r.entry), i)) return false;
      if (std::uint64_t{r.entry} + 1 != next_[kEntries] || !owns(pairs().at(entry(r.entry).pair), r.pattern) ||
          pattern(r.pattern).rule > i)
        return fail(Fault::bad_rule);
      used += pattern(r.pattern).rule == i ? 1 : 0;
      if (r.options != kNone && !check_options(r.options)) return false;
    }
    return require(used == header_.pattern_count, Fault::bad_count);
  }

  bool check_entry(const Entry& e, std::uint32_t first_rule) {
    if (e.pair >= header_.pair_count || e.first_rule != first_rule) return fail(Fault::bad_entry);
    return check_text(e.description);
  }

  bool owns(const Pair& p, std::uint32_t number) const {
    const Shape first = shape(p.first_shape), last = shape(p.first_shape + p.shape_count - 1);
    return number >= first.first_pattern && number < last.first_pattern + last.pattern_count;
  }

  bool check_options(std::uint32_t number) {
    if (!take(kOptions, number, 1)) return fail(Fault::bad_rule);
    Options o = record<Options>(kOptions, number);
    if ((o.flags & ~kOptionAll) != 0) return fail(Fault::bad_flags);
    if ((o.flags & kOptionHasSha256) == 0 && std::memcmp(o.sha256, kNoOptions.sha256, sizeof o.sha256) != 0)
      return fail(Fault::bad_padding);
    if (o.first_item != next_[kItems]) return fail(Fault::bad_item);
    if (!check_path(o.exe) || !check_text(o.reason) || !check_path(o.cwd) || !check_list(o.env_count, is_env_pair) ||
        !check_list(o.writable_count, is_path) || !check_list(o.allow_count, is_example) ||
        !check_list(o.deny_count, is_example))
      return false;
    o.first_item = 0;  // set or not, it says nothing
    const bool says_something = std::memcmp(&o, &kNoOptions, sizeof o) != 0;
    const bool may_list_writable = (o.flags & kOptionHasWritable) != 0 || o.writable_count == 0;
    return require(says_something && may_list_writable, Fault::bad_options);
  }

  bool nothing_left() { return require(std::ranges::count(left_, 0) == kSections, Fault::bad_count); }

  Fault fault_ = Fault::none;
  std::uint32_t next_[kSections] = {};  // record, or byte, of each section
  std::uint64_t left_[kSections] = {};
};

Result<BlobView> BlobView::open(VerifiedBytes verified) { return Validator(verified.payload()).run(); }

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
