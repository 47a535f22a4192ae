// Policy -> open table: lower, emit, open it as a node would, and run the author's examples through the
// decider.
//
// tests/policyc/compile_test.cpp.
#pragma once

#include <optional>
#include <vector>

#include "enforcer/blob_view.hpp"
#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

// A table in memory that owns its bytes. `table` points into `storage`.
struct CompiledPolicy {
  std::vector<std::uint8_t> payload;
  std::vector<std::uint8_t> storage;
  BlobView table;
};

// Reports what only the compiled table can tell. Nothing when there is no table; a failed example is an error
// in `diagnostics`, but the table is returned.
std::optional<CompiledPolicy> compile_policy(const Policy& policy, Diagnostics& diagnostics);

}  // namespace x0x::policyc
