// A payload that the right keys have signed, though no compiler wrote it (a table with changes, or anything at all):
// refused, or exactly what the compiler would write for what it says.
#include <sodium.h>

#include "fuzz/target.hpp"
#include "policyc/emit.hpp"
#include "policyc/read_table.hpp"
#include "tests/support/generate.hpp"

using namespace x0x;

namespace {

// Signed for real, but without minisign's second signature, which no node looks at.
test::ByteVector sign_once(const test::ByteVector& payload, const test::TestKey& key) {
  std::uint8_t hash[64];
  test::ByteVector record(blob::kKeyNumberBytes + 2 * blob::kSignatureBytes + 1);
  std::copy(key.number.begin(), key.number.end(), record.begin());
  crypto_generichash(hash, sizeof hash, payload.data(), payload.size(), nullptr, 0);
  crypto_sign_detached(record.data() + blob::kKeyNumberBytes, nullptr, hash, sizeof hash, key.secret_key.data());
  return test::assemble(payload, {record});
}

// Tables to begin with, from the smallest to some of every kind.
test::ByteVector known(std::uint8_t which) {
  if (which == 0) return policyc::emit(test::policy({}));
  test::Random random(which);
  policyc::Policy policy = test::random_policy(random);
  if (which % 2 == 1 && !policy.entries.empty()) {
    policyc::Command& command = policy.entries[0].commands[0];
    policy.name = "name";
    policy.audience = {"db", "web"};
    command.env = {{"A", "1"}, {"B", ""}};
    command.writable = {"/tmp"};
    command.exe = "/bin/true";
    command.allow = {{{"a", "b"}, {}}};
    command.sha256.emplace().fill(which);
  }
  return policyc::emit(policy);
}

}  // namespace

X0X_FUZZ(table_open) {
  static const test::TestKey key(1);
  static const TrustedKeys trusted = test::trust({key}, 1);
  fuzz::Input in({data, size});
  const std::uint8_t which = in.byte();
  const Bytes rest = which >= 0x80 ? in.take(size) : Bytes{};
  const test::ByteVector payload = which >= 0x80 ? test::ByteVector(rest.begin(), rest.end()) : in.edit(known(which));
  const test::ByteVector file = sign_once(payload, key);
  const Result<VerifiedBytes> verified = verify({file}, trusted);
  fuzz::promise(verified.ok(), "the signature is right");
  const Result<BlobView> opened = BlobView::open(verified.value());
  if (!opened.ok()) return 0;
  const policyc::Policy policy = policyc::read_table(opened.value());
  fuzz::promise(policyc::emit(policy) == payload, "two byte strings never mean the same table");
  test::OwnedRequest request;
  if (!policy.entries.empty()) request.agent = policy.entries[0].agent, request.machine = policy.entries[0].machine;
  request.argv = {"a", "1", "/x"};
  test::decide(opened.value(), request);
  return 0;
}
