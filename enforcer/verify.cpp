#include "enforcer/verify.hpp"

#include <sodium.h>

#include <algorithm>

#include "enforcer/text.hpp"

namespace x0x {

static Fault add_key(TrustedKeys& trusted, std::string_view base64) {
  if (trusted.count == kMaxTrustedKeys) return Fault::trust_too_many_keys;
  TrustedKey& added = trusted.keys[trusted.count];
  std::size_t length = 0;
  if (sodium_base642bin(reinterpret_cast<std::uint8_t*>(&added), sizeof added, base64.data(), base64.size(), nullptr,
                        &length, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0 ||
      length != sizeof added || std::memcmp(added.kind, "Ed", 2) != 0)
    return Fault::trust_bad_key;
  for (const TrustedKey& key : std::span(trusted.keys, trusted.count))  // one key under two numbers must not vote twice
    if (std::memcmp(key.number, added.number, 8) == 0 || std::memcmp(key.key, added.key, 32) == 0)
      return Fault::trust_duplicate_key;
  ++trusted.count;
  return Fault::none;
}

static Fault add_line(TrustedKeys& trusted, Bytes line) {
  const std::string_view words = as_text(line);
  if (words.empty() || words.starts_with("untrusted comment:")) return Fault::none;
  if (!words.starts_with("threshold "))
    return words.find(' ') == words.npos ? add_key(trusted, words) : Fault::trust_bad_line;
  const Bytes digits = line.subspan(std::strlen("threshold "));
  if (trusted.threshold != 0 || !is_int(digits)) return Fault::trust_bad_threshold;
  for (const std::uint8_t digit : digits) trusted.threshold = trusted.threshold * 10 + digit - '0';
  return Fault::none;
}

Result<TrustedKeys> parse_trust(Bytes text) {
  if (text.size() > kMaxTrustFileBytes) return Fault::trust_too_large;
  TrustedKeys trusted{};
  while (!text.empty()) {
    Bytes line = text.first(std::min(as_text(text).find('\n'), text.size()));
    text = text.subspan(std::min(line.size() + 1, text.size()));
    if (as_text(line).ends_with('\r')) line = line.first(line.size() - 1);
    if (const Fault fault = add_line(trusted, line); fault != Fault::none) return fault;
  }
  if (trusted.count == 0) return Fault::trust_no_keys;
  if (trusted.threshold > trusted.count) return Fault::trust_bad_threshold;
  trusted.threshold = std::max(trusted.threshold, 1u);
  return trusted;
}

Result<Envelope> open_envelope(UntrustedBytes file) {
  if (file.bytes.size() > blob::kMaxFileBytes) return Fault::too_large;
  if (file.bytes.size() < blob::kTrailerBytes) return Fault::bad_magic;
  const Bytes body = file.bytes.first(file.bytes.size() - blob::kTrailerBytes);
  Cursor trailer(file.bytes.subspan(body.size()));
  const std::uint32_t count = trailer.u32(), size = trailer.u32();
  if (std::memcmp(trailer.take(8).data(), blob::kTrailerMagic, 8) != 0) return Fault::bad_magic;
  if (size > body.size() || count > blob::kMaxSignatures) return Fault::bad_signature_block;
  Envelope envelope{body.first(body.size() - size), count, {}};
  Cursor records(body.last(size));
  for (SignatureRecord& record : std::span(envelope.signatures, count))
    record = {records.take(blob::kKeyNumberBytes), records.take(blob::kSignatureBytes),
              records.take(blob::kSignatureBytes), records.take(records.u8())};
  if (!records.at_end()) return Fault::bad_signature_block;
  return envelope;
}

Result<VerifiedBytes> verify(UntrustedBytes file, const TrustedKeys& trusted) {
  const Result<Envelope> envelope = open_envelope(file);
  if (!envelope.ok()) return envelope.fault();
  const auto& [payload, count, signatures] = envelope.value();
  if (count == 0) return Fault::unsigned_table;

  std::uint8_t hash[crypto_generichash_BYTES_MAX];
  crypto_generichash(hash, sizeof hash, payload.data(), payload.size(), nullptr, 0);

  std::uint32_t voters = 0;
  for (const TrustedKey& key : std::span(trusted.keys, trusted.count)) {
    bool voted = false;  // once, however often it signed
    for (const SignatureRecord& record : std::span(signatures, count)) {
      if (std::memcmp(record.key_number.data(), key.number, blob::kKeyNumberBytes) != 0) continue;
      if (crypto_sign_verify_detached(record.signature.data(), hash, sizeof hash, key.key) != 0)
        return Fault::bad_signature;
      voted = true;
    }
    voters += voted;
  }
  if (voters == 0) return Fault::untrusted_key;
  if (voters < trusted.threshold) return Fault::threshold_not_met;
  return VerifiedBytes(payload);
}

Digest digest_of(Bytes payload) {
  Digest digest;
  crypto_generichash(digest.bytes, sizeof digest.bytes, payload.data(), payload.size(), nullptr, 0);
  return digest;
}

}  // namespace x0x
