#include "policyc/lower.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "enforcer/blob_view.hpp"

namespace x0x::policyc {

namespace {

Bytes as_bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

std::string pair_key(const Entry& entry) {
  std::string key(entry.agent.begin(), entry.agent.end());
  key.append(entry.machine.begin(), entry.machine.end());
  return key;
}

std::string number(std::size_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

struct TakenApart {
  std::string templates, pieces;
  std::uint32_t tag;
};

TakenApart take_apart(const std::vector<Token>& argv) {
  TakenApart made;
  std::vector<std::string> runs(1);  // what a request holds in one stretch
  for (std::size_t i = 0, after = argv.size(); i < argv.size(); ++i) {
    const Token& token = argv[i];
    const std::string piece = token.text + (token.kind == Token::Kind::url_path ? "/" : "");
    made.pieces += piece + '\0';
    runs.back() += piece;
    if (token.kind == Token::Kind::literal) {
      runs.back() += '\0';
      continue;
    }
    const auto is_template = [](const Token& t) { return t.kind != Token::Kind::literal; };
    const auto next = std::find_if(argv.begin() + static_cast<std::ptrdiff_t>(i) + 1, argv.end(), is_template);
    after = static_cast<std::size_t>(next - argv.begin()) - i - 1;
    made.templates.insert(0, number(piece.size()) + number(after));
    runs.emplace_back();
  }
  std::uint64_t hash = 0;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    if (!run->empty()) hash = hash_bytes(hash, as_bytes(*run));
  made.tag = tag_of(hash);
  return made;
}

// Fills in where the slots of a sorted group start; says which of its slots holds more than a lookup may try.
template <class Record>
std::optional<std::uint32_t> place_slots(Record* group, std::size_t count) {
  const auto slot_of = [&](const Record& record) { return std::uint64_t{record.place.tag} * count >> 32; };
  std::optional<std::uint32_t> crowded;
  std::size_t slot = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; slot <= slot_of(group[i]); ++slot) group[slot].place.start = static_cast<std::uint32_t>(i);
    if (i - group[slot - 1].place.start >= blob::kMaxProbes) crowded = static_cast<std::uint32_t>(slot - 1);
  }
  for (; slot < count; ++slot) group[slot].place.start = static_cast<std::uint32_t>(count);
  return crowded;
}

template <class Record>
bool in_slot(const Record& record, std::size_t count, std::uint32_t slot) {
  return std::uint64_t{record.place.tag} * count >> 32 == slot;
}

class Lowering {
 public:
  explicit Lowering(const Policy& policy) : policy_(policy) {}

  Lowered run() {
    find_pairs();
    read_rules();
    for (std::uint32_t i = 0; i < made_.pairs.size(); ++i) number_shapes(made_.pairs[i], shapes_of_[i]);
    return std::move(made_);
  }

 private:
  struct Use {
    std::string pieces;
    std::uint32_t tag, rule;
    bool operator<(const Use& other) const {
      return std::tie(tag, pieces, rule) < std::tie(other.tag, other.pieces, other.rule);
    }
  };
  using Shapes = std::map<std::string, std::vector<Use>>;  // by their templates

  void find_pairs() {
    std::unordered_map<std::string, std::uint32_t> numbers;
    for (const Entry& entry : policy_.entries) {
      const std::string key = pair_key(entry);
      if (numbers.try_emplace(key).second) made_.pairs.push_back({key, {tag_of(hash_pair(as_bytes(key).data())), 0}});
    }
    std::ranges::sort(made_.pairs, [](const LoweredPair& a, const LoweredPair& b) {
      return std::tie(a.place.tag, a.key) < std::tie(b.place.tag, b.key);
    });
    for (std::uint32_t i = 0; i < made_.pairs.size(); ++i) numbers[made_.pairs[i].key] = i;
    for (const Entry& entry : policy_.entries) made_.entry_pairs.push_back(numbers[pair_key(entry)]);
    const std::size_t count = made_.pairs.size();
    if (const auto slot = place_slots(made_.pairs.data(), count))
      for (std::uint32_t i = 0; i < made_.entry_pairs.size(); ++i)
        if (in_slot(made_.pairs[made_.entry_pairs[i]], count, *slot)) made_.crowded_entry = i;
  }

  void read_rules() {
    shapes_of_.resize(made_.pairs.size());
    for (std::uint32_t entry = 0; entry < policy_.entries.size(); ++entry) {
      Shapes& shapes = shapes_of_[made_.entry_pairs[entry]];
      for (const Command& command : policy_.entries[entry].commands) {
        const auto rule = static_cast<std::uint32_t>(made_.rules.size());
        TakenApart parts = take_apart(command.argv);
        shapes[parts.templates].push_back({std::move(parts.pieces), parts.tag, rule});
        made_.rules.push_back({entry});
        if (shapes.size() > blob::kMaxShapes && !made_.one_too_many) made_.one_too_many = rule;
      }
    }
  }

  void number_shapes(LoweredPair& pair, Shapes& shapes) {
    pair.first_shape = static_cast<std::uint32_t>(made_.shapes.size());
    pair.shape_count = static_cast<std::uint32_t>(shapes.size());
    for (auto& [templates, uses] : shapes) {
      const std::size_t first = made_.patterns.size();
      std::ranges::sort(uses, std::less<>());
      for (Use& use : uses) {
        const bool is_new = made_.patterns.size() == first || made_.patterns.back().pieces != use.pieces;
        if (is_new) made_.patterns.push_back({std::move(use.pieces), {use.tag, 0}, use.rule});
        made_.rules[use.rule].pattern = static_cast<std::uint32_t>(made_.patterns.size() - 1);
      }
      const std::size_t count = made_.patterns.size() - first;
      made_.shapes.push_back({templates, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
      LoweredPattern* const group = made_.patterns.data() + first;
      if (const auto slot = place_slots(group, count))
        for (std::size_t i = 0; i < count; ++i)
          if (in_slot(group[i], count, *slot))
            made_.crowded_rule = std::max(group[i].rule, made_.crowded_rule.value_or(0));
    }
  }

  const Policy& policy_;
  std::vector<Shapes> shapes_of_;  // of each pair
  Lowered made_;
};

}  // namespace

Lowered lower(const Policy& policy) { return Lowering(policy).run(); }

}  // namespace x0x::policyc
