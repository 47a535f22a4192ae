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

using blob::Caps, blob::Entry, blob::Options, blob::Pair, blob::Rule, blob::Shape, blob::Template;

// Spreads keys over the slots and promises nothing more: a lookup compares the key itself.
std::uint64_t hash_bytes(std::uint64_t seed, Bytes bytes);

class BlobView {
 public:
  static Result<BlobView> open(VerifiedBytes verified);

  Bytes payload() const { return payload_; }
  const blob::Header& header() const { return header_; }
  bool enabled() const { return (header_.flags & blob::kFlagEnabled) != 0; }

  Pair pair(std::uint32_t i) const { return record<Pair>(kPairs, i); }
  Shape shape(std::uint32_t i) const { return record<Shape>(kShapes, i); }
  Template template_at(std::uint32_t i) const { return record<Template>(kTemplates, i); }
  Entry entry(std::uint32_t i) const { return record<Entry>(kEntries, i); }
  Rule rule(std::uint32_t i) const { return record<Rule>(kRules, i); }
  Options options(std::uint32_t rule) const;  // of a rule without any: nothing is set
  Text item(std::uint32_t i) const { return text(record<blob::TextRef>(kItems, i)); }
  Text text(blob::TextRef ref) const {
    return {ref.offset == blob::kNone ? Bytes{} : Bytes(sections_[kTexts] + ref.offset, ref.length)};
  }
  Bytes pieces(std::uint32_t rule) const;  // each token's fixed bytes, followed by a NUL
  // The limits that hold for one rule: the policy's, tightened by its entry and by itself. No stdin is a cap of 0.
  Caps caps(std::uint32_t rule) const;

  // The number of the pair with this key; of its first rule, in file order, that matches the whole argv. kNone: there
  // is none. The block is_argv().
  std::uint32_t find_pair(const std::uint8_t* key) const;
  std::uint32_t first_match(std::uint32_t pair, Bytes block, std::uint32_t argc) const;

 protected:  // the validator fills it in
  // In the order of their counts in the header and of their bytes.
  enum Section { kPairs, kShapes, kTemplates, kEntries, kRules, kOptions, kItems, kSlots, kPieces, kTexts, kSections };
  template <class Record>
  Record record(Section section, std::size_t i) const {
    return load<Record>(sections_[section] + i * sizeof(Record));
  }
  const std::uint8_t* home(std::uint64_t hash) const {
    return sections_[kSlots] + (hash & (header_.slot_count - 1)) * sizeof(blob::Slot);
  }

  // From a key's home on, going round at the end: the first slot that is empty or where stops() says so. The index has
  // no long stretch without an empty slot.
  template <class Stops>
  blob::Slot first_slot(std::uint64_t hash, Stops stops) const {
    for (;; ++hash)
      if (const auto slot = load<blob::Slot>(home(hash)); slot.number == 0 || stops(slot)) return slot;
  }

  // The parts of an argv that a rule of this shape fixes, each as long as it can be, the last first: from the token
  // after a template to the end of the next template's piece. They are the same bytes in a request and in the pieces of
  // a rule that matches it. False, and no more of them, when a template does not fit its token.
  template <class Fits, class Visit>
  bool each_run(const Shape& shape, Bytes block, Fits fits, Visit visit) const {
    const std::uint8_t* start = block.data() + block.size();  // of the token at hand
    const std::uint8_t *next = start, *end = start;           // of the token after it, of the run
    std::uint32_t token = shape.argc;
    for (std::uint32_t i = shape.template_count; i-- > 0;) {
      const Template t = template_at(shape.first_template + i);
      for (; token > t.token; --token)
        for (next = start--; start[-1] != 0;) --start;
      if (!fits(t, Bytes(start, next - 1))) return false;
      visit(Bytes(next, end));
      end = start + t.piece_bytes;
    }
    visit(Bytes(block.data(), end));
    return true;
  }

  std::uint32_t find_rule(std::uint32_t shape_number, Shape shape, Bytes block) const;
  bool is_rule(std::uint32_t number, std::uint32_t shape_number, Bytes block, std::size_t size) const;

  Bytes payload_;
  blob::Header header_ = {};
  const std::uint8_t* sections_[kSections] = {};
};

}  // namespace x0x
