// Why a request is allowed or denied, in the terms of the policy's author.
//
// The decision itself is the enforcer's own; this only finds words for it. tests/policyc/explain_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "policyc/load_policy.hpp"
#include "policyc/request.hpp"

namespace x0x::policyc {

// A rule as its author wrote it: `curl -s http://h:1<URL_PATH>`, quoted where that is needed to read it back.
std::string show_token(const Token& token);
std::string show_argv(const std::vector<Token>& argv);
std::string show_argv(const std::vector<std::string>& argv);

// The rule that came closest, and the first token where it and the request part.
struct NearMiss {
  std::uint32_t rule;
  std::size_t token;
  std::string why;
};
std::optional<NearMiss> nearest_rule(const LoadedPolicy& loaded, const OwnedRequest& request);

// decision, reason, rule, matched_acl, max_duration_secs
nlohmann::ordered_json verdict_json(const LoadedPolicy& loaded, const Verdict& verdict);

std::string explain_human(const LoadedPolicy& loaded, const OwnedRequest& request, const Verdict& verdict);

}  // namespace x0x::policyc
