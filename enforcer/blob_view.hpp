// A decision table that has been checked from the first byte to the last.
//
// open() makes one linear pass and accepts exactly the bytes the compiler would write: every order, padding, count and
// index is compared with the only value it may have. After it every read below is total. Shown by
// tests/enforcer/blob_view_test.cpp (one table per fault) and tests/enforcer/corruption_test.cpp (every bit).
#pragma once

#include "enforcer/text.hpp"
#include "enforcer/verify.hpp"

namespace x0x {

// A string inside the table: NUL-terminated in place, so it can go to execve as it is. Absent: data() is null.
struct Text {
  Bytes bytes;
  bool present() const { return bytes.data() != nullptr; }
  const char* c_str() const { return reinterpret_cast<const char*>(bytes.data()); }
};

using blob::Caps, blob::Entry, blob::Options, blob::Pair, blob::Pattern, blob::Rule, blob::Shape, blob::Template;

// ---- hashes spread keys over the slots and promise nothing more: a lookup compares the key itself

__extension__ using Wide = unsigned __int128;

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_sixteen(std::uint64_t seed, const std::uint8_t* bytes) {
  return fold(load_u64(bytes) ^ blob::kHashFirst, load_u64(bytes + 8) ^ seed);
}

// The last sixteen may overlap what has been seen; fewer are filled up with zeroes.
inline std::uint64_t hash_bytes(std::uint64_t seed, Bytes bytes) {
  std::uint64_t hash = seed ^ (bytes.size() * blob::kHashLength);
  if (bytes.size() < 16) {
    std::uint8_t filled[16] = {};
    std::memcpy(filled, bytes.data(), bytes.size());
    return hash_sixteen(hash, filled);
  }
  const std::uint8_t* const last = bytes.data() + bytes.size() - 16;
  for (const std::uint8_t* at = bytes.data(); at < last; at += 16) hash = hash_sixteen(hash, at);
  return hash_sixteen(hash, last);
}

// Ids are spread already. Their words are added up, so that every byte counts.
inline std::uint64_t hash_pair(const std::uint8_t* key) {
  const auto word = [&](std::size_t i) { return load_u64(key + 8 * i); };
  return fold(blob::kHashFirst + word(0) + word(1) + word(2) + word(3),
              blob::kHashLength + word(4) + word(5) + word(6) + word(7));
}

// Pairs, or patterns of a shape: sorted by tag, and each record says where the slot with its number begins.
template <class Record>
struct Group {
  const std::uint8_t* records;
  std::uint32_t count;

  Record at(std::size_t i) const { return load<Record>(records + i * sizeof(Record)); }
  std::size_t slot_of(std::uint32_t tag) const { return (std::size_t{tag} * count) >> 32; }

  // The number of the first record with this hash's tag of which is_wanted() says so, or kNone.
  template <class IsWanted>
  std::uint32_t find(std::uint64_t hash, IsWanted is_wanted) const {
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    if (count == 0) return blob::kNone;
    for (std::uint32_t i = at(slot_of(tag)).start; i < count && at(i).tag <= tag; ++i)
      if (at(i).tag == tag && is_wanted(i)) return i;
    return blob::kNone;
  }
};

class BlobView {
 public:
  static Result<BlobView> open(VerifiedBytes verified);

  Bytes payload() const { return payload_; }
  const blob::Header& header() const { return header_; }
  bool enabled() const { return (header_.flags & blob::kFlagEnabled) != 0; }

  Group<Pair> pairs() const { return {sections_[kPairs], header_.pair_count}; }
  Group<Pattern> patterns(const Shape& of) const {
    return {sections_[kPatterns] + of.first_pattern * sizeof(Pattern), of.pattern_count};
  }
  Shape shape(std::uint32_t i) const { return record<Shape>(kShapes, i); }
  Template template_at(std::uint32_t i) const { return record<Template>(kTemplates, i); }
  Pattern pattern(std::uint32_t i) const { return record<Pattern>(kPatterns, i); }
  Entry entry(std::uint32_t i) const { return record<Entry>(kEntries, i); }
  Rule rule(std::uint32_t i) const { return record<Rule>(kRules, i); }
  Options options(std::uint32_t rule) const;  // of a rule without any: nothing is set
  Text item(std::uint32_t i) const { return text(record<blob::TextRef>(kItems, i)); }
  Text text(blob::TextRef ref) const {
    return {ref.offset == blob::kNone ? Bytes{} : Bytes(sections_[kTexts] + ref.offset, ref.length)};
  }
  // Each token's fixed bytes, followed by a NUL.
  Bytes pieces(const Pattern& of) const { return {sections_[kPieces] + of.pieces, of.piece_bytes}; }
  // The limits that hold for one rule: the policy's, tightened by its entry and by itself. No stdin is a cap of 0.
  Caps caps(std::uint32_t rule) const;

  // The parts of an argv that a rule of this shape fixes, each as long as it can be, the last first: from the token
  // after a template to the end of the next template's piece. They are the same bytes in a request and in the pieces of
  // a rule that matches it. False, and no more of them, when there is no token for a template, or one that does not
  // fit.
  template <class Fits, class Visit>
  bool each_run(const Shape& shape, Bytes argv, Fits fits, Visit visit) const {
    const std::uint8_t *const begin = argv.data(), *end = begin + argv.size();  // of the run
    const std::uint8_t *start = end, *next = end;  // of the token at hand, of the one after it
    for (std::uint32_t i = 0; i < shape.template_count; ++i) {
      const Template t = template_at(shape.first_template + i);
      for (std::uint64_t tokens = std::uint64_t{t.after} + 1; tokens > 0; --tokens) {
        next = start--;
        while (start > begin && start[-1] != 0) --start;
        if (start == begin) return false;  // the program's name is not a template
      }
      if (!fits(t, Bytes(start, next - 1))) return false;
      visit(Bytes(next, end));
      end = start + t.piece_bytes;
    }
    visit(Bytes(begin, end));
    return true;
  }

 protected:  // the validator fills it in
  // In the order of their counts in the header and of their bytes.
  enum Section { kPairs, kShapes, kTemplates, kPatterns, kEntries, kRules, kOptions, kItems, kPieces, kTexts };
  static constexpr std::size_t kSections = std::size(blob::kRecordBytes);
  template <class Record>
  Record record(Section section, std::uint32_t i) const {
    return load<Record>(sections_[section] + i * sizeof(Record));
  }

  Bytes payload_;
  blob::Header header_ = {};
  const std::uint8_t* sections_[kSections] = {};
};

}  // namespace x0x
