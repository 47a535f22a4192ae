#include "policyc/ephemeral.hpp"

#include <algorithm>

#include "policyc/signatures.hpp"

namespace x0x::policyc {

Result<BlobView> open_payload(std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& storage) {
  const SecretKey key = generate_key();
  const PublicKey public_key = key.public_key();
  storage = assemble(payload, {sign_payload(payload, key, "")});
  TrustedKeys trusted{};
  trusted.count = trusted.threshold = 1;
  std::ranges::copy(public_key.number, trusted.keys[0].number);
  std::ranges::copy(public_key.key, trusted.keys[0].key);
  const Result<VerifiedBytes> verified = verify(UntrustedBytes{storage}, trusted);
  if (!verified.ok()) return verified.fault();
  return BlobView::open(verified.value());
}

}  // namespace x0x::policyc
