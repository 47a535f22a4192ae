// Table -> policy: the inverse of lower and emit, for people who hold a table and not its source.
//
// emit(read_table(view)) gives back view's payload, byte for byte (tests/policyc/read_table_test.cpp).
#pragma once

#include "enforcer/blob_view.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

Policy read_table(const BlobView& view);

// The tokens of one rule, from argv[0] on.
std::vector<Token> rule_argv(const BlobView& view, std::uint32_t rule);

std::string to_string(Bytes bytes);

}  // namespace x0x::policyc
