// Random policies and requests, biased towards what goes wrong: literals that look like templates, nested URL
// prefixes, shared beginnings, doubled pairs and commands, requests one step away from a rule.
#pragma once

#include <random>

#include "tests/support/table.hpp"

namespace x0x::test {

// Where choices come from: a generator with a seed, or bytes that somebody else has chosen, zeroes when they are used
// up.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  explicit Random(Bytes choices) : choices_(choices), given_(true) {}
  std::size_t below(std::size_t n);

 private:
  std::mt19937_64 engine_;
  Bytes choices_;
  bool given_ = false;
};

policyc::Policy random_policy(Random& random);
OwnedRequest random_request(Random& random, const policyc::Policy& policy);

}  // namespace x0x::test
