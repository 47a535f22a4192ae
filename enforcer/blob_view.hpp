// A decision table that has been checked from the first byte to the last.
//
// open() makes one linear pass and accepts exactly the bytes the compiler would write: every order, padding, count and
// index is compared with the only value it may have. After it every read below is total. Shown by
// tests/enforcer/blob_view_test.cpp (one table per fault) and tests/enforcer/corruption_test.cpp (every bit).
#pragma once

#include <cstring>

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

  Pair pair(std::uint32_t i) const { return record<Pair>(pairs_, i); }
  Shape shape(std::uint32_t i) const { return record<Shape>(shapes_, i); }
  Template template_at(std::uint32_t i) const { return record<Template>(templates_, i); }
  Entry entry(std::uint32_t i) const { return record<Entry>(entries_, i); }
  Rule rule(std::uint32_t i) const { return record<Rule>(rules_, i); }
  Options options(std::uint32_t rule) const;  // of a rule without any: nothing is set
  Text item(std::uint32_t i) const { return text(record<blob::TextRef>(items_, i)); }
  Text text(blob::TextRef ref) const {
    return {ref.offset == blob::kNone ? Bytes{} : Bytes(texts_ + ref.offset, ref.length)};
  }
  Bytes pieces(std::uint32_t rule) const;  // each token's fixed bytes, followed by a NUL
  // The limits that hold for one rule: the policy's, tightened by its entry and by itself. No stdin at all is a cap of
  // 0.
  Caps caps(std::uint32_t rule) const;

  // The number of this pair, and of the first rule with this shape and this argv's pieces; kNone: there is none. The
  // argv has as many tokens as the shape and fits its templates. `limit`: meet no slot with a greater number; the one
  // with this number needs no comparison.
  std::uint32_t find_pair(const std::uint8_t* key, std::uint32_t limit = blob::kNone) const;
  std::uint32_t find_rule(std::uint32_t shape_number, const Argv& argv, std::uint32_t limit = blob::kNone) const;

 private:
  friend class Validator;
  template <class Record>
  static Record record(const std::uint8_t* section, std::size_t i) {
    return load<Record>(section + i * sizeof(Record));
  }
  template <class Matches>
  std::uint32_t find(std::uint64_t hash, std::uint32_t limit, Matches matches) const;

  Bytes payload_;
  blob::Header header_ = {};
  const std::uint8_t *pairs_ = nullptr, *shapes_ = nullptr, *templates_ = nullptr, *entries_ = nullptr,
                     *rules_ = nullptr, *options_ = nullptr, *items_ = nullptr, *slots_ = nullptr, *pieces_ = nullptr,
                     *texts_ = nullptr;
};

}  // namespace x0x
