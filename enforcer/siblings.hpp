// How many positions of the trie one request can be at, counted over the children of one parent.
//
// A token equals at most one literal; only a literal of digits can also be an <INT>; only one with a slash
// can also be a <URL_PATH>; and of the URL prefixes only nested ones can match together. The compiler writes
// the count into the table and the reader checks it, both with this code. tests/enforcer/siblings_test.cpp
// counts by hand.
#pragma once

#include "enforcer/text.hpp"

namespace x0x {

class Siblings {
 public:
  Siblings() {}  // leaves nested_ alone: a parent without URL prefixes never reads it

  void clear() {
    plain_ = numeric_ = slashed_ = integer_ = url_ = depth_ = 0;
    templates_ = 0;
  }

  // Children come in table order: literals, <INT>, URL prefixes sorted by bytes.
  void add(std::uint8_t kind, Bytes label, std::uint32_t width) {
    if (kind == blob::kKindInt) {
      templates_ |= blob::kTemplateInt;
      integer_ = width;
    } else if (kind == blob::kKindUrlPath) {
      templates_ |= blob::kTemplateUrlPath;
      add_url(label, width);
    } else {
      const bool slashed = kind == blob::kKindLiteral && (classes_of(label) & kByteSlash) != 0;
      std::uint32_t& most = is_int(label) ? numeric_ : slashed ? slashed_ : plain_;
      most = width > most ? width : most;
    }
  }

  std::uint8_t templates() const { return templates_; }

  // Anything above kMaxWidth means "too many".
  std::uint32_t width() const {
    std::uint32_t most = plain_ > 0 ? plain_ : 1;
    most = numeric_ + integer_ > most ? numeric_ + integer_ : most;
    return slashed_ + url_ > most ? slashed_ + url_ : most;
  }

 private:
  // Sorted by bytes, a label follows directly on the labels that begin it: a stack holds exactly those.
  void add_url(Bytes label, std::uint32_t width) {
    while (depth_ > 0 && !begins(nested_[depth_ - 1].label, label)) --depth_;
    if (depth_ == blob::kMaxWidth) {
      url_ = blob::kMaxWidth + 1;
      return;
    }
    const std::uint32_t below = depth_ > 0 ? nested_[depth_ - 1].sum : 0;
    nested_[depth_++] = {label, below + width};
    url_ = below + width > url_ ? below + width : url_;
  }
  static bool begins(Bytes prefix, Bytes label) {
    return prefix.size() <= label.size() && std::memcmp(prefix.data(), label.data(), prefix.size()) == 0;
  }

  struct Nested {
    Bytes label;
    std::uint32_t sum;  // widths of this prefix and of those that begin it
  };
  std::uint32_t plain_ = 0, numeric_ = 0, slashed_ = 0, integer_ = 0, url_ = 0, depth_ = 0;
  std::uint8_t templates_ = 0;
  Nested nested_[blob::kMaxWidth];
};

}  // namespace x0x
