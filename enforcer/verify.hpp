// Proves that bytes are ours. Types carry the trust: only verify() makes VerifiedBytes, and only
// VerifiedBytes can be opened as a table.
//
// The payload is hashed whole and nothing in it is looked at before a threshold of pinned keys has signed it.
// tests/enforcer/verify_test.cpp has one test per fault.
#pragma once

#include "enforcer/cursor.hpp"
#include "schema/blob_format.hpp"

namespace x0x {

inline constexpr std::size_t kMaxTrustedKeys = 32;
inline constexpr std::size_t kMaxTrustFileBytes = 64u << 10;

struct TrustedKey {  // the bytes of a minisign public key
  char kind[2];      // "Ed"
  std::uint8_t number[8];
  std::uint8_t key[32];
};

struct TrustedKeys {
  TrustedKey keys[kMaxTrustedKeys];
  std::uint32_t count, threshold;
};

// minisign public keys one after another, each with or without its comment line, and optionally
// `threshold N`.
Result<TrustedKeys> parse_trust(Bytes text);

struct UntrustedBytes {
  Bytes bytes;
};

class VerifiedBytes {
 public:
  VerifiedBytes() = default;
  Bytes payload() const { return payload_; }

 private:
  explicit VerifiedBytes(Bytes payload) : payload_(payload) {}
  friend Result<VerifiedBytes> verify(UntrustedBytes file, const TrustedKeys& trusted);
  Bytes payload_;
};

struct SignatureRecord {
  Bytes key_number, signature, global_signature, trusted_comment;
};

// A file taken apart: what was signed, and who is said to have signed it. Nothing is proved yet.
struct Envelope {
  Bytes payload;
  std::uint32_t signature_count;
  SignatureRecord signatures[blob::kMaxSignatures];
};
Result<Envelope> open_envelope(UntrustedBytes file);

Result<VerifiedBytes> verify(UntrustedBytes file, const TrustedKeys& trusted);

// BLAKE2b-256 of the payload: the policy's name in every log.
struct Digest {
  std::uint8_t bytes[32];
};
Digest digest_of(Bytes payload);

}  // namespace x0x
