// Opens a payload that nobody has signed yet.
//
// The reader has no unsigned mode and gets none: a key pair is made in memory, signs, is pinned and is
// forgotten. What comes back has passed every structural check of a node and says nothing about trust.
// tests/policyc/signatures_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "enforcer/blob_view.hpp"

namespace x0x::policyc {

// The view points into `storage`, which must outlive it.
Result<BlobView> open_payload(std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& storage);

}  // namespace x0x::policyc
