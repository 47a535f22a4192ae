#include "tests/support/reference.hpp"

#include <re2/re2.h>

#include <algorithm>

namespace x0x::test {

using policyc::Token;
using wire::DenialReason;

namespace {

re2::RE2::Options latin1() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // tokens are bytes
  options.set_never_nl(false);
  return options;
}

bool matches(const Token& pattern, const std::string& token) {
  switch (pattern.kind) {
    case Token::Kind::literal:
      return token == pattern.text;
    case Token::Kind::integer:
      return reference_is_int(token);
    case Token::Kind::url_path:
      return token.starts_with(pattern.text) && reference_is_url_path(token.substr(pattern.text.size()));
  }
  return false;
}

bool matches(const policyc::Command& command, const std::vector<std::string>& argv) {
  if (command.argv.size() != argv.size()) return false;
  for (std::size_t i = 0; i < argv.size(); ++i)
    if (!matches(command.argv[i], argv[i])) return false;
  return true;
}

std::uint64_t smallest(std::uint64_t cap, std::uint64_t other) { return other == 0 ? cap : std::min(cap, other); }

}  // namespace

bool reference_is_int(const std::string& token) {
  static const re2::RE2 pattern("[1-9][0-9]{0,5}", latin1());
  return re2::RE2::FullMatch(token, pattern);
}

bool reference_is_url_path(const std::string& token) {
  static const re2::RE2 pattern("/[A-Za-z0-9/_.-]{0,256}", latin1());
  return re2::RE2::FullMatch(token, pattern) && token.find("..") == std::string::npos;
}

ReferenceVerdict reference_decide(const policyc::Policy& policy, const OwnedRequest& request, std::uint64_t now) {
  if (!policy.exec.enabled || now < policy.not_before.value_or(0) || (policy.expires && now >= *policy.expires))
    return {false, DenialReason::exec_disabled};
  if (request.argv.empty()) return {false, DenialReason::argv_not_allowed};
  if (request.cwd_present) return {false, DenialReason::cwd_not_allowed};
  for (const std::string& token : request.argv)
    if (token.find_first_of(std::string(";|&><`$\n\0", 9)) != std::string::npos)
      return {false, DenialReason::shell_metachar_in_argv};

  bool pair_known = false;
  std::uint32_t rule = 0;
  for (const policyc::Entry& entry : policy.entries) {
    const bool ours = entry.agent == request.agent && entry.machine == request.machine;
    pair_known = pair_known || ours;
    for (const policyc::Command& command : entry.commands) {
      if (ours && matches(command, request.argv)) {
        const std::uint64_t stdin_cap =
            command.stdin_allowed ? smallest(policy.exec.max_stdin_bytes, command.max_stdin_bytes) : 0;
        const std::uint64_t seconds =
            smallest(smallest(policy.exec.max_duration_secs, entry.max_duration_secs), command.max_duration_secs);
        if (request.stdin_bytes > stdin_cap) return {false, DenialReason::stdin_too_large, rule};
        if (request.timeout_ms > 1000 * seconds) return {false, DenialReason::timeout_too_large, rule};
        return {true, {}, rule};
      }
      ++rule;
    }
  }
  return {false, pair_known ? DenialReason::argv_not_allowed : DenialReason::agent_machine_not_in_acl};
}

}  // namespace x0x::test
