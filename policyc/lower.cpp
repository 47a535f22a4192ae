#include "policyc/lower.hpp"

#include <map>
#include <unordered_map>

#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

struct Use {
  std::uint32_t first_rule = 0, number = 0;
};
using ShapesOfPair = std::map<LoweredShape, Use>;

std::string pair_key(const Entry& entry) {
  std::string key(entry.agent.begin(), entry.agent.end());
  key.append(entry.machine.begin(), entry.machine.end());
  return key;
}

LoweredShape take_apart(const std::vector<Token>& argv, std::string& pieces) {
  LoweredShape shape;
  for (const Token& token : argv) {
    const std::size_t start = pieces.size();
    pieces += token.text;
    if (token.kind == Token::Kind::url_path) pieces += '/';
    if (token.kind != Token::Kind::literal)
      shape.templates.push_back({shape.argc, static_cast<std::uint32_t>(pieces.size() - start)});
    pieces += '\0';
    ++shape.argc;
  }
  return shape;
}

}  // namespace

Lowered lower(const Policy& policy) {
  Lowered lowered;
  std::unordered_map<std::string, std::uint32_t> pair_numbers;
  std::vector<ShapesOfPair> shapes_of;
  std::vector<const Use*> uses;  // one per rule
  for (std::uint32_t entry = 0; entry < policy.entries.size(); ++entry) {
    const auto number = static_cast<std::uint32_t>(lowered.pairs.size());
    const auto [pair, is_new] = pair_numbers.try_emplace(pair_key(policy.entries[entry]), number);
    if (is_new) {
      lowered.pairs.push_back({pair->first});
      shapes_of.emplace_back();
    }
    lowered.entry_pairs.push_back(pair->second);
    ShapesOfPair& shapes = shapes_of[pair->second];
    for (const Command& command : policy.entries[entry].commands) {
      const auto rule_number = static_cast<std::uint32_t>(lowered.rules.size());
      LoweredRule& rule = lowered.rules.emplace_back();
      rule.entry = entry;
      const auto [use, is_first] = shapes.try_emplace(take_apart(command.argv, rule.pieces), Use{rule_number});
      uses.push_back(&use->second);
      if (is_first && shapes.size() > blob::kMaxShapes && !lowered.one_too_many) lowered.one_too_many = rule_number;
    }
  }

  for (std::size_t i = 0; i < lowered.pairs.size(); ++i) {
    lowered.pairs[i].first_shape = static_cast<std::uint32_t>(lowered.shapes.size());
    lowered.pairs[i].shape_count = static_cast<std::uint32_t>(shapes_of[i].size());
    for (auto& [shape, use] : shapes_of[i]) {
      use.number = static_cast<std::uint32_t>(lowered.shapes.size());
      lowered.shapes.push_back(shape);
      lowered.first_rules.push_back(use.first_rule);
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) lowered.rules[i].shape = uses[i]->number;
  return lowered;
}

}  // namespace x0x::policyc
