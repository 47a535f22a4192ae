// The peer of a decision: the list that the x0x daemon keeps, and the walk that it does for every request, as plainly
// as there. Entries in file order; the first command that matches token by token wins.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::bench {

struct PlainToken {
  policyc::Token::Kind kind;
  std::string text;  // the literal, or what stands before <URL_PATH>
};

struct PlainEntry {
  std::array<std::uint8_t, 32> agent, machine;
  std::vector<std::vector<PlainToken>> commands;
};

using PlainList = std::vector<PlainEntry>;

inline PlainList plain_list(const policyc::Policy& policy) {
  PlainList list;
  for (const policyc::Entry& entry : policy.entries) {
    PlainEntry& plain = list.emplace_back(PlainEntry{entry.agent, entry.machine, {}});
    for (const policyc::Command& command : entry.commands) {
      std::vector<PlainToken>& argv = plain.commands.emplace_back();
      for (const policyc::Token& token : command.argv) argv.push_back({token.kind, token.text});
    }
  }
  return list;
}

inline bool is_plain_int(std::string_view text) {
  return !text.empty() && text.size() <= 6 && text[0] != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

inline bool is_plain_url_path(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("/_.-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text[0] == '/' && text.size() <= 257 && std::ranges::all_of(text, allowed) &&
         text.find("..") == std::string_view::npos;
}

inline bool matches(const PlainToken& allowed, const std::string& token) {
  switch (allowed.kind) {
    case policyc::Token::Kind::literal:
      return allowed.text == token;
    case policyc::Token::Kind::integer:
      return is_plain_int(token);
    case policyc::Token::Kind::url_path:
      return token.starts_with(allowed.text) && is_plain_url_path(std::string_view(token).substr(allowed.text.size()));
  }
  return false;
}

inline bool matches(const std::vector<PlainToken>& command, const std::vector<std::string>& argv) {
  if (command.size() != argv.size()) return false;
  for (std::size_t i = 0; i < argv.size(); ++i)
    if (!matches(command[i], argv[i])) return false;
  return true;
}

// Written as x0x writes it: a comparison for each character.
inline bool is_forbidden(char c) {
  switch (c) {
    case '\0':
    case ';':
    case '|':
    case '&':
    case '>':
    case '<':
    case '`':
    case '$':
    case '\n':
      return true;
    default:
      return false;
  }
}

inline bool linear_scan(const PlainList& list, const std::uint8_t* pair, const std::vector<std::string>& argv) {
  for (const std::string& token : argv)
    if (std::ranges::any_of(token, is_forbidden)) return false;
  for (const PlainEntry& entry : list) {
    if (!std::equal(entry.agent.begin(), entry.agent.end(), pair) ||
        !std::equal(entry.machine.begin(), entry.machine.end(), pair + 32))
      continue;
    for (const std::vector<PlainToken>& command : entry.commands)
      if (matches(command, argv)) return true;
  }
  return false;
}

}  // namespace x0x::bench
