// Random policies and requests, biased towards what goes wrong: literals that look like templates, nested URL
// prefixes, shared beginnings, doubled pairs and commands, requests one step away from a rule.
#pragma once

#include <random>

#include "tests/support/table.hpp"

namespace x0x::test {

using Random = std::mt19937_64;

policyc::Policy random_policy(Random& random);
OwnedRequest random_request(Random& random, const policyc::Policy& policy);

}  // namespace x0x::test
