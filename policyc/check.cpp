#include "policyc/check.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "enforcer/text.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

// The commands seen so far, as a trie: one root per pair, one node per token below it. Nodes are found by
// hash, in a flat table that is at most half full: a policy may have a million tokens.
class SeenCommands {
 public:
  explicit SeenCommands(std::size_t tokens) : slots_(std::bit_ceil(2 * tokens + 2), kEmpty) { nodes_.reserve(tokens); }

  std::uint32_t root_of(const Entry& entry) {
    const auto [root, added] =
        roots_.try_emplace({entry.agent, entry.machine}, static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.emplace_back();
    return root->second;
  }

  // The first command that matches all that `command` matches; adds it when there is none.
  const Command* cover_or_add(std::uint32_t root, const Command& command) {
    if (const Command* cover = find_cover(root, command)) return cover;
    std::uint32_t at = root;
    for (const Token& token : command.argv) at = step(at, token);
    nodes_[at].command = &command;
    nodes_[at].order = count_++ & 0x7fffffffu;
    return nullptr;
  }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;

  struct Node {
    const Token* token = nullptr;      // the root of a pair has none
    const Command* command = nullptr;  // the first that ends here
    std::uint32_t parent = kEmpty;
    std::uint32_t order : 31 = 0;
    std::uint32_t url_path_below : 1 = false;
  };

  // The slot of this child, or the empty one where it belongs.
  std::uint32_t& slot_of(std::uint32_t parent, Token::Kind kind, std::string_view text) {
    std::uint64_t hash = std::hash<std::string_view>()(text);
    hash = (hash ^ (std::uint64_t{parent} << 2 | static_cast<std::uint64_t>(kind))) * blob::kHashFirst;
    for (std::size_t i = hash >> 32;; ++i) {
      std::uint32_t& slot = slots_[i & (slots_.size() - 1)];
      if (slot == kEmpty) return slot;
      const Node& node = nodes_[slot];
      if (node.parent == parent && node.token->kind == kind && node.token->text == text) return slot;
    }
  }

  std::uint32_t step(std::uint32_t parent, const Token& token) {
    std::uint32_t& slot = slot_of(parent, token.kind, token.text);
    if (slot != kEmpty) return slot;
    slot = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({&token, nullptr, parent});
    if (token.kind == Token::Kind::url_path) nodes_[parent].url_path_below = true;
    return slot;
  }

  void follow(std::uint32_t parent, Token::Kind kind, std::string_view text) {
    if (const std::uint32_t node = slot_of(parent, kind, text); node != kEmpty) next_.push_back(node);
  }

  // Every child whose token matches all that `token` matches.
  void follow_covers(std::uint32_t parent, const Token& token) {
    follow(parent, token.kind, token.text);
    if (token.kind != Token::Kind::literal) return;
    const std::string_view text = token.text;
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    if (is_int(bytes)) follow(parent, Token::Kind::integer, {});
    if (!nodes_[parent].url_path_below) return;
    for (std::size_t slash = 0; slash < text.size(); ++slash)
      if (text[slash] == '/' && is_url_tail(bytes.subspan(slash + 1)))
        follow(parent, Token::Kind::url_path, text.substr(0, slash));
  }

  const Command* find_cover(std::uint32_t root, const Command& command) {
    live_.assign(1, root);
    for (const Token& token : command.argv) {
      next_.clear();
      for (const std::uint32_t parent : live_) follow_covers(parent, token);
      // Each belongs to a shape of its own. With too many the policy is refused anyway, so there is no need to go on.
      if (next_.empty() || next_.size() > blob::kMaxShapes) return nullptr;
      std::swap(live_, next_);
    }
    const Node* first = nullptr;
    for (const std::uint32_t at : live_) {
      const Node& node = nodes_[at];
      if (node.command != nullptr && (first == nullptr || node.order < first->order)) first = &node;
    }
    return first == nullptr ? nullptr : first->command;
  }

  std::map<std::pair<Id, Id>, std::uint32_t> roots_;
  std::vector<std::uint32_t> slots_;
  std::vector<Node> nodes_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> live_, next_;
};

}  // namespace

void check_shadowing(const Policy& policy, Diagnostics& diagnostics) {
  std::size_t tokens = 0;
  for (const Entry& entry : policy.entries)
    for (const Command& command : entry.commands) tokens += command.argv.size();
  SeenCommands seen(tokens);
  for (const Entry& entry : policy.entries) {
    const std::uint32_t root = seen.root_of(entry);
    for (const Command& command : entry.commands) {
      const Command* cover = seen.cover_or_add(root, command);
      if (cover == nullptr) continue;
      diagnostics.report(
          Kind::shadowed_command, command.argv_span, "this command can never be the first to match",
          cover->argv == command.argv
              ? fmt::format("the command on line {} has the same argv; remove one of them", cover->argv_span.line)
              : fmt::format("the command on line {} matches everything that this one matches; remove one "
                            "of them, or move this one before it",
                            cover->argv_span.line));
    }
  }
}

}  // namespace x0x::policyc
