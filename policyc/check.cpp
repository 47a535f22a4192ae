#include "policyc/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policyc/templates.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

// The commands seen so far, as a trie: one root per pair, one edge per token.
class SeenCommands {
 public:
  explicit SeenCommands(std::size_t tokens) {
    edges_.reserve(tokens);
    nodes_.reserve(tokens);
  }

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
    nodes_[at] = {&command, count_++, nodes_[at].url_path_below};
    return nullptr;
  }

 private:
  struct Node {
    const Command* command = nullptr;  // the first that ends here
    std::uint32_t order = 0;
    bool url_path_below = false;
  };
  struct Edge {
    std::uint32_t from;
    Token::Kind kind;
    std::string_view text;
    bool operator==(const Edge& other) const {
      return from == other.from && kind == other.kind && text == other.text;
    }
  };
  struct EdgeHash {
    std::size_t operator()(const Edge& edge) const {
      const std::uint64_t from =
          (std::uint64_t{edge.from} << 2 | static_cast<std::uint64_t>(edge.kind)) * blob::kHashWord;
      return std::hash<std::string_view>()(edge.text) ^ static_cast<std::size_t>(from ^ from >> 29);
    }
  };

  std::uint32_t step(std::uint32_t from, const Token& token) {
    const auto [edge, added] =
        edges_.try_emplace(Edge{from, token.kind, token.text}, static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.emplace_back();
    if (token.kind == Token::Kind::url_path) nodes_[from].url_path_below = true;
    return edge->second;
  }

  void follow(const Edge& edge, std::vector<std::uint32_t>& to) const {
    if (const auto found = edges_.find(edge); found != edges_.end()) to.push_back(found->second);
  }

  // Every edge whose token matches all that `token` matches.
  void follow_covers(std::uint32_t from, const Token& token, std::vector<std::uint32_t>& to) const {
    follow({from, token.kind, token.text}, to);
    if (token.kind != Token::Kind::literal) return;
    const std::string_view text = token.text;
    if (matches_int(text)) follow({from, Token::Kind::integer, {}}, to);
    if (!nodes_[from].url_path_below) return;
    for (const std::size_t slash : url_path_starts(text))
      follow({from, Token::Kind::url_path, text.substr(0, slash)}, to);
  }

  const Command* find_cover(std::uint32_t root, const Command& command) {
    live_.assign(1, root);
    for (const Token& token : command.argv) {
      next_.clear();
      for (const std::uint32_t from : live_) follow_covers(from, token, next_);
      // A policy this ambiguous is refused when its table is built, so there is no need to go on.
      if (next_.empty() || next_.size() > blob::kMaxWidth) return nullptr;
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
  std::unordered_map<Edge, std::uint32_t, EdgeHash> edges_;
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
              ? fmt::format("the command on line {} has the same argv; remove one of them",
                            cover->argv_span.line)
              : fmt::format("the command on line {} matches everything that this one matches; remove one "
                            "of them, or move this one before it",
                            cover->argv_span.line));
    }
  }
}

}  // namespace x0x::policyc
