#include "enforcer/verify.hpp"

#include <sodium.h>

#include <algorithm>
#include <bit>

#include "enforcer/text.hpp"

namespace x0x {

static Fault add_key(TrustedKeys& trusted, std::string_view base64) {
  struct {
    char kind[2];
    TrustedKey key;
  } raw;
  std::size_t length = 0;
  if (sodium_base642bin(reinterpret_cast<std::uint8_t*>(&raw), sizeof raw, base64.data(), base64.size(), nullptr,
                        &length, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0 ||
      length != sizeof raw || raw.kind[0] != 'E' || raw.kind[1] != 'd')
    return Fault::trust_bad_key;
  for (const TrustedKey& key : std::span(trusted.keys, trusted.count))  // one key under two numbers must not vote twice
    if (std::memcmp(key.number, raw.key.number, 8) == 0 || std::memcmp(key.key, raw.key.key, 32) == 0)
      return Fault::trust_duplicate_key;
  if (trusted.count == kMaxTrustedKeys) return Fault::trust_too_many_keys;
  trusted.keys[trusted.count++] = raw.key;
  return Fault::none;
}

Result<TrustedKeys> parse_trust(Bytes text) {
  if (text.size() > kMaxTrustFileBytes) return Fault::trust_too_large;
  TrustedKeys trusted{};
  while (!text.empty()) {
    const std::size_t end = std::min(as_text(text).find('\n'), text.size());
    Bytes line = text.first(end);
    text = text.subspan(std::min(end + 1, text.size()));
    if (as_text(line).ends_with('\r')) line = line.first(line.size() - 1);
    const std::string_view words = as_text(line);
    if (words.empty() || words.starts_with("untrusted comment:")) continue;
    if (words.starts_with("threshold ")) {
      const Bytes digits = line.subspan(10);
      if (trusted.threshold != 0 || !is_int(digits)) return Fault::trust_bad_threshold;
      for (const std::uint8_t digit : digits) trusted.threshold = trusted.threshold * 10 + digit - '0';
    } else if (words.find(' ') != std::string_view::npos) {
      return Fault::trust_bad_line;
    } else if (const Fault fault = add_key(trusted, words); fault != Fault::none) {
      return fault;
    }
  }
  if (trusted.count == 0) return Fault::trust_no_keys;
  if (trusted.threshold > trusted.count) return Fault::trust_bad_threshold;
  if (trusted.threshold == 0) trusted.threshold = 1;
  return trusted;
}

SignatureRecord next_signature(Cursor& records) {
  SignatureRecord record;
  record.key_number = records.take(blob::kKeyNumberBytes);
  record.signature = records.take(blob::kSignatureBytes);
  record.global_signature = records.take(blob::kSignatureBytes);
  record.trusted_comment = records.take(records.u8());
  return record;
}

Result<Envelope> open_envelope(UntrustedBytes file) {
  if (file.bytes.size() > blob::kMaxFileBytes) return Fault::too_large;
  if (file.bytes.size() < blob::kTrailerBytes) return Fault::bad_magic;
  Cursor trailer(file.bytes.last(blob::kTrailerBytes));
  const std::uint32_t count = trailer.u32();
  const std::uint32_t size = trailer.u32();
  if (std::memcmp(trailer.take(8).data(), blob::kTrailerMagic, 8) != 0) return Fault::bad_magic;
  const Bytes body = file.bytes.first(file.bytes.size() - blob::kTrailerBytes);
  if (size > body.size() || count > blob::kMaxSignatures) return Fault::bad_signature_block;
  const Envelope envelope{body.first(body.size() - size), body.last(size), count};
  Cursor records(envelope.records);
  for (std::uint32_t i = 0; i < count; ++i) next_signature(records);
  if (!records.at_end()) return Fault::bad_signature_block;
  return envelope;
}

Result<VerifiedBytes> verify(UntrustedBytes file, const TrustedKeys& trusted) {
  const Result<Envelope> opened = open_envelope(file);
  if (!opened.ok()) return opened.fault();
  const Envelope& envelope = opened.value();
  if (envelope.signature_count == 0) return Fault::unsigned_table;

  std::uint8_t hash[crypto_generichash_BYTES_MAX];
  crypto_generichash(hash, sizeof hash, envelope.payload.data(), envelope.payload.size(), nullptr, 0);

  std::uint32_t voted = 0;  // one bit for each pinned key, however often it signed
  Cursor records(envelope.records);
  for (std::uint32_t i = 0; i < envelope.signature_count; ++i) {
    const SignatureRecord record = next_signature(records);
    for (std::uint32_t k = 0; k < trusted.count; ++k) {
      if (std::memcmp(trusted.keys[k].number, record.key_number.data(), blob::kKeyNumberBytes) != 0) continue;
      if (crypto_sign_verify_detached(record.signature.data(), hash, sizeof hash, trusted.keys[k].key) != 0)
        return Fault::bad_signature;
      voted |= 1u << k;
    }
  }
  if (voted == 0) return Fault::untrusted_key;
  if (static_cast<std::uint32_t>(std::popcount(voted)) < trusted.threshold) return Fault::threshold_not_met;
  return VerifiedBytes(envelope.payload);
}

Digest digest_of(Bytes payload) {
  Digest digest;
  crypto_generichash(digest.bytes, sizeof digest.bytes, payload.data(), payload.size(), nullptr, 0);
  return digest;
}

}  // namespace x0x
