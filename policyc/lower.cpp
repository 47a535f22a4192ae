#include "policyc/lower.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "enforcer/blob_view.hpp"
#include "enforcer/siblings.hpp"

namespace x0x::policyc {

namespace {

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// Positions in the order rules mention them, with an open hash over (parent, kind, label).
class Builder {
 public:
  Builder() : slots_(1024) { positions_.emplace_back(); }

  std::uint32_t child(std::uint32_t parent, std::uint8_t kind, const std::string& label) {
    if (positions_.size() * 2 > slots_.size()) grow();
    std::uint32_t slot = home(parent, kind, label);
    for (;; slot = (slot + 1) & mask()) {
      const std::uint32_t found = slots_[slot];
      if (found == 0) break;
      const TriePosition& p = positions_[found];
      if (p.parent == parent && p.kind == kind && p.label == label) return found;
    }
    const auto index = static_cast<std::uint32_t>(positions_.size());
    slots_[slot] = index;
    TriePosition& added = positions_.emplace_back();
    added.parent = parent;
    added.kind = kind;
    added.label = label;
    return index;
  }

  std::vector<TriePosition>& positions() { return positions_; }

 private:
  std::uint32_t mask() const { return static_cast<std::uint32_t>(slots_.size() - 1); }
  std::uint32_t home(std::uint32_t parent, std::uint8_t kind, const std::string& label) const {
    return home_slot(parent, kind, hash_label(bytes_of(label)), mask());
  }
  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (std::uint32_t i = 1; i < positions_.size(); ++i) {
      std::uint32_t slot = home(positions_[i].parent, positions_[i].kind, positions_[i].label);
      while (slots_[slot] != 0) slot = (slot + 1) & mask();
      slots_[slot] = i;
    }
  }

  std::vector<TriePosition> positions_;
  std::vector<std::uint32_t> slots_;
};

std::uint32_t add_token(Builder& builder, std::uint32_t parent, const Token& token) {
  switch (token.kind) {
    case Token::Kind::integer:
      return builder.child(parent, blob::kKindInt, "");
    case Token::Kind::url_path:
      return builder.child(parent, blob::kKindUrlPath, token.text + "/");
    case Token::Kind::literal:
      break;
  }
  return builder.child(parent, blob::kKindLiteral, token.text);
}

std::string pair_key(const Entry& entry) {
  std::string key(entry.agent.begin(), entry.agent.end());
  key.append(entry.machine.begin(), entry.machine.end());
  return key;
}

// New number of each old position: level by level, siblings sorted by kind and label.
std::vector<std::uint32_t> table_order(const std::vector<TriePosition>& positions) {
  std::vector<std::uint32_t> first(positions.size() + 1), children(positions.size() - 1);
  for (std::size_t i = 1; i < positions.size(); ++i) ++first[positions[i].parent + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> next = first;
  for (std::uint32_t i = 1; i < positions.size(); ++i) children[next[positions[i].parent]++] = i;

  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(positions[a].kind, positions[a].label) < std::tie(positions[b].kind, positions[b].label);
  };
  std::vector<std::uint32_t> order{0};
  order.reserve(positions.size());
  for (std::size_t done = 0; done < order.size(); ++done) {
    const auto begin = children.begin() + first[order[done]], end = children.begin() + first[order[done] + 1];
    std::sort(begin, end, before);
    order.insert(order.end(), begin, end);
  }
  std::vector<std::uint32_t> renumbered(positions.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) renumbered[order[i]] = i;
  return renumbered;
}

// From the leaves up, what each position must know of its children.
void count_widths(Trie& trie) {
  auto& positions = trie.positions;
  std::uint32_t end = static_cast<std::uint32_t>(positions.size());
  while (end > 1) {
    const std::uint32_t parent = positions[end - 1].parent;
    std::uint32_t begin = end - 1;
    while (begin > 1 && positions[begin - 1].parent == parent) --begin;
    Siblings siblings;
    for (std::uint32_t i = begin; i < end; ++i)
      siblings.add(positions[i].kind, bytes_of(positions[i].label), positions[i].width);
    positions[parent].templates = siblings.templates();
    positions[parent].width = std::min(siblings.width(), blob::kMaxWidth + 1);
    end = begin;
  }
}

// The last rule below the deepest position that is too wide: the one whose removal helps.
std::optional<std::uint32_t> find_too_ambiguous(const Trie& trie) {
  const auto& positions = trie.positions;
  std::uint32_t culprit = 0;
  for (std::uint32_t i = 1; i < positions.size(); ++i)
    if (positions[i].width > blob::kMaxWidth) culprit = i;
  if (culprit == 0) return std::nullopt;
  for (auto rule = static_cast<std::uint32_t>(trie.rule_positions.size()); rule-- > 0;) {
    std::uint32_t at = trie.rule_positions[rule];
    while (at > culprit) at = positions[at].parent;
    if (at == culprit) return rule;
  }
  return std::nullopt;
}

}  // namespace

Trie lower(const Policy& policy) {
  Builder builder;
  Trie trie;
  for (const Entry& entry : policy.entries) {
    const std::uint32_t pair = builder.child(0, blob::kKindPair, pair_key(entry));
    trie.entry_pairs.push_back(pair);
    for (const Command& command : entry.commands) {
      std::uint32_t at = pair;
      for (const Token& token : command.argv) at = add_token(builder, at, token);
      const auto rule = static_cast<std::uint32_t>(trie.rule_positions.size());
      trie.rule_positions.push_back(at);
      builder.positions()[at].rule = std::min(builder.positions()[at].rule, rule);
    }
  }

  const std::vector<std::uint32_t> renumbered = table_order(builder.positions());
  trie.positions.resize(renumbered.size());
  for (std::size_t i = 0; i < renumbered.size(); ++i) trie.positions[renumbered[i]] = std::move(builder.positions()[i]);
  for (std::uint32_t i = 1; i < trie.positions.size(); ++i) {
    TriePosition& p = trie.positions[i];
    p.parent = renumbered[p.parent];
    p.pair = p.kind == blob::kKindPair ? i : trie.positions[p.parent].pair;
  }
  for (std::uint32_t& at : trie.rule_positions) at = renumbered[at];
  for (std::uint32_t& pair : trie.entry_pairs) pair = renumbered[pair];
  count_widths(trie);
  trie.too_ambiguous = find_too_ambiguous(trie);
  return trie;
}

}  // namespace x0x::policyc
