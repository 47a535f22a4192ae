// A file as it comes from a disk, or a signed one with changes: nothing that two of three keys have not signed is ever
// called verified.
#include "enforcer/verify.hpp"
#include "fuzz/target.hpp"
#include "tests/support/table.hpp"

using namespace x0x;

X0X_FUZZ(table_verify) {
  static const TrustedKeys trusted = test::trust({test::TestKey(1), test::TestKey(2), test::TestKey(3)}, 2);
  static const test::ByteVector payload{'p', 'a', 'y', 'l', 'o', 'a', 'd'};
  static const test::ByteVector known = test::assemble(
      payload, {test::signature_record(payload, test::TestKey(1)), test::signature_record(payload, test::TestKey(2))});
  fuzz::Input in({data, size});
  const bool raw = in.byte() >= 0x80;
  const Bytes rest = raw ? in.take(size) : Bytes{};
  const test::ByteVector file = raw ? test::ByteVector(rest.begin(), rest.end()) : in.edit(known);
  const Result<Envelope> envelope = open_envelope({file});
  const Result<VerifiedBytes> verified = verify({file}, trusted);
  if (!envelope.ok())
    fuzz::promise(envelope.fault() == verified.fault(), "a file that cannot be taken apart is refused");
  if (!verified.ok()) return 0;
  // No input can forge a signature: only what nobody trusts, the comments, may have changed.
  fuzz::promise(as_text(verified.value().payload()) == "payload", "only what was signed");
  fuzz::promise(envelope.ok() && envelope.value().signature_count >= 2, "by two keys");
  return 0;
}
