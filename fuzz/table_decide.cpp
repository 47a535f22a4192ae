// A policy and requests made from the input: compiled, opened and decided, the answer is the reference model's.
#include "fuzz/target.hpp"
#include "policyc/lower.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/reference.hpp"

using namespace x0x;

X0X_FUZZ(table_decide) {
  test::Random random(Bytes(data, size));
  const policyc::Policy policy = test::random_policy(random);
  if (policyc::lower(policy).one_too_many) return 0;
  const test::OpenTable table = test::open_policy(policy);
  fuzz::promise(table.fault == Fault::none, "a policy becomes a table");
  for (int i = 0; i < 8; ++i) {
    const test::OwnedRequest request = test::random_request(random, policy);
    const Verdict verdict = test::decide(table.view, request);
    const test::ReferenceVerdict expected = test::reference_decide(policy, request);
    fuzz::promise(is_allow(verdict.decision) == expected.allowed, "allowed exactly when the model allows it");
    fuzz::promise(verdict.rule == expected.rule, "by the first rule that matches");
    fuzz::promise(expected.allowed || verdict.reason == expected.reason, "denied for the same reason");
  }
  return 0;
}
