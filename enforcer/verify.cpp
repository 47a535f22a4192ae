#include "enforcer/verify.hpp"

#include <sodium.h>

#include <cstring>
#include <string_view>

namespace x0x {

namespace {

constexpr std::size_t kPublicKeyBytes = 42;  // "Ed", key number, key

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The next line without its newline; a carriage return before it is dropped.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line(text.data(), end == std::string_view::npos ? text.size() : end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// A whole number from 1 to 99, or 0.
std::uint32_t parse_small_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 2 || digits[0] == '0') return 0;
  std::uint32_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return number;
}

const TrustedKey* find_key(const TrustedKeys& trusted, const std::uint8_t* number) {
  for (std::uint32_t i = 0; i < trusted.count; ++i)
    if (std::memcmp(trusted.keys[i].number, number, sizeof trusted.keys[i].number) == 0) return &trusted.keys[i];
  return nullptr;
}

Fault add_key(TrustedKeys& trusted, std::string_view base64) {
  std::uint8_t raw[kPublicKeyBytes];
  std::size_t length = 0;
  if (sodium_base642bin(raw, sizeof raw, base64.data(), base64.size(), nullptr, &length, nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0 ||
      length != sizeof raw || raw[0] != 'E' || raw[1] != 'd')
    return Fault::trust_bad_key;
  for (std::uint32_t i = 0; i < trusted.count; ++i)  // the same key under two numbers must not vote twice
    if (std::memcmp(trusted.keys[i].number, raw + 2, 8) == 0 || std::memcmp(trusted.keys[i].key, raw + 10, 32) == 0)
      return Fault::trust_duplicate_key;
  if (trusted.count == kMaxTrustedKeys) return Fault::trust_too_many_keys;
  TrustedKey& key = trusted.keys[trusted.count++];
  std::memcpy(key.number, raw + 2, sizeof key.number);
  std::memcpy(key.key, raw + 10, sizeof key.key);
  return Fault::none;
}

}  // namespace

Result<TrustedKeys> parse_trust(Bytes bytes) {
  if (bytes.size() > kMaxTrustFileBytes) return Fault::trust_too_large;
  TrustedKeys trusted{};
  std::string_view text = as_text(bytes);
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (line.empty() || line.starts_with("untrusted comment:")) continue;
    if (line.starts_with("threshold ")) {
      if (trusted.threshold != 0) return Fault::trust_bad_threshold;
      line.remove_prefix(10);
      trusted.threshold = parse_small_number(line);
      if (trusted.threshold == 0) return Fault::trust_bad_threshold;
    } else if (line.find(' ') != std::string_view::npos) {
      return Fault::trust_bad_line;
    } else if (const Fault fault = add_key(trusted, line); fault != Fault::none) {
      return fault;
    }
  }
  if (trusted.count == 0) return Fault::trust_no_keys;
  if (trusted.threshold == 0) trusted.threshold = 1;
  if (trusted.threshold > trusted.count) return Fault::trust_bad_threshold;
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

  bool signed_by[kMaxTrustedKeys] = {};  // one vote per pinned key, however often it signed
  std::uint32_t votes = 0;
  Cursor records(envelope.records);
  for (std::uint32_t i = 0; i < envelope.signature_count; ++i) {
    const SignatureRecord record = next_signature(records);
    const TrustedKey* key = find_key(trusted, record.key_number.data());
    if (key == nullptr) continue;
    if (crypto_sign_verify_detached(record.signature.data(), hash, sizeof hash, key->key) != 0)
      return Fault::bad_signature;
    bool& voted = signed_by[key - trusted.keys];
    votes += voted ? 0 : 1;
    voted = true;
  }
  if (votes == 0) return Fault::untrusted_key;
  if (votes < trusted.threshold) return Fault::threshold_not_met;
  return VerifiedBytes(envelope.payload);
}

Digest digest_of(Bytes payload) {
  Digest digest;
  crypto_generichash(digest.bytes, sizeof digest.bytes, payload.data(), payload.size(), nullptr, 0);
  return digest;
}

}  // namespace x0x
