// The slow, obvious decider: a linear scan over the policy as written, with RE2 for the templates.
//
// It exists only in tests. What it says is right by reading it; the real decider must agree.
#pragma once

#include "tests/support/table.hpp"

namespace x0x::test {

struct ReferenceVerdict {
  bool allowed = false;
  wire::DenialReason reason{};
  std::uint32_t rule = blob::kNone;
};

ReferenceVerdict reference_decide(const policyc::Policy& policy, const OwnedRequest& request,
                                  std::uint64_t now = 1'800'000'000);

bool reference_is_int(const std::string& token);
bool reference_is_url_path(const std::string& token);

}  // namespace x0x::test
