#include "policyc/signatures.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>

#include "policyc/ephemeral.hpp"
#include "policyc/hex.hpp"
#include "policyc/read_table.hpp"
#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

using PayloadHash = std::array<std::uint8_t, 64>;

PayloadHash hash_of(Bytes payload) {
  PayloadHash hash;
  crypto_generichash(hash.data(), hash.size(), payload.data(), payload.size(), nullptr, 0);
  return hash;
}

// What the global signature signs.
std::vector<std::uint8_t> signature_and_comment(const Signature& signature) {
  std::vector<std::uint8_t> bytes(signature.signature.begin(), signature.signature.end());
  bytes.insert(bytes.end(), signature.trusted_comment.begin(), signature.trusted_comment.end());
  return bytes;
}

void append_u32(std::vector<std::uint8_t>& bytes, std::size_t value) {
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

template <class Range>
void append(std::vector<std::uint8_t>& bytes, const Range& range) {
  bytes.insert(bytes.end(), range.begin(), range.end());
}

}  // namespace

SignedTable take_apart(Bytes file, const std::string& name) {
  const Result<Envelope> opened = open_envelope(UntrustedBytes{file});
  if (!opened.ok())
    throw UserError(fmt::format("{}: {}: {}", name, fault_name(opened.fault()), fault_message(opened.fault())),
                    kExitRefused);
  SignedTable table;
  table.payload.assign(opened.value().payload.begin(), opened.value().payload.end());
  for (const SignatureRecord& record : std::span(opened.value().signatures, opened.value().signature_count)) {
    Signature& signature = table.signatures.emplace_back();
    std::ranges::copy(record.key_number, signature.number.begin());
    std::ranges::copy(record.signature, signature.signature.begin());
    std::ranges::copy(record.global_signature, signature.global_signature.begin());
    signature.trusted_comment.assign(record.trusted_comment.begin(), record.trusted_comment.end());
  }
  return table;
}

std::vector<std::uint8_t> assemble(Bytes payload, const std::vector<Signature>& signatures) {
  std::vector<std::uint8_t> file(payload.begin(), payload.end());
  for (const Signature& signature : signatures) {
    append(file, signature.number);
    append(file, signature.signature);
    append(file, signature.global_signature);
    file.push_back(static_cast<std::uint8_t>(signature.trusted_comment.size()));
    append(file, signature.trusted_comment);
  }
  const std::size_t record_bytes = file.size() - payload.size();
  append_u32(file, signatures.size());
  append_u32(file, record_bytes);
  append(file, std::string_view(blob::kTrailerMagic, 8));
  return file;
}

void add_signature(std::vector<Signature>& signatures, Signature signature) {
  std::erase_if(signatures, [&](const Signature& old) { return old.number == signature.number; });
  signatures.push_back(std::move(signature));
  if (signatures.size() > blob::kMaxSignatures)
    throw UserError(fmt::format("the table has {} signatures already, and no more fit", blob::kMaxSignatures),
                    kExitRefused);
  std::ranges::stable_sort(signatures, {}, &Signature::number);
}

Signature sign_payload(Bytes payload, const SecretKey& key, const std::string& trusted_comment) {
  check_comment(trusted_comment, blob::kMaxTrustedCommentBytes);
  Signature signature{key.number, {}, {}, trusted_comment};
  const PayloadHash hash = hash_of(payload);
  crypto_sign_detached(signature.signature.data(), nullptr, hash.data(), hash.size(), key.key.data());
  const std::vector<std::uint8_t> global = signature_and_comment(signature);
  crypto_sign_detached(signature.global_signature.data(), nullptr, global.data(), global.size(), key.key.data());
  return signature;
}

SignatureCheck check_signature(Bytes payload, const Signature& signature, const PublicKey& key) {
  if (signature.number != key.number) return SignatureCheck::wrong_key;
  const PayloadHash hash = hash_of(payload);
  if (crypto_sign_verify_detached(signature.signature.data(), hash.data(), hash.size(), key.key.data()) != 0)
    return SignatureCheck::bad_signature;
  const std::vector<std::uint8_t> global = signature_and_comment(signature);
  if (crypto_sign_verify_detached(signature.global_signature.data(), global.data(), global.size(), key.key.data()) != 0)
    return SignatureCheck::bad_comment;
  return SignatureCheck::good;
}

std::string default_trusted_comment(const BlobView& table) {
  const std::string name = to_string(table.text(table.header().name).bytes);
  const std::string tail =
      fmt::format("v{} digest {}", table.header().policy_version, to_hex(digest_of(table.payload()).bytes));
  const std::string full = fmt::format("x0x-policy {} {}", name, tail);
  // minisign prints a comment as it is. A name that could play with the terminal, or does not fit, is left
  // out; the digest names the policy.
  const bool printable = std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const bool fits = !name.empty() && full.size() <= blob::kMaxTrustedCommentBytes;
  return printable && fits ? full : fmt::format("x0x-policy {}", tail);
}

std::vector<std::uint8_t> sign_table(Bytes payload, const SecretKey& key, const std::string& trusted_comment) {
  std::vector<std::uint8_t> storage;
  const Result<BlobView> table = open_payload(payload, storage);
  if (!table.ok())
    throw UserError(
        fmt::format("this is no table to sign: {}: {}", fault_name(table.fault()), fault_message(table.fault())),
        kExitRefused);
  return assemble(
      payload,
      {sign_payload(payload, key, trusted_comment.empty() ? default_trusted_comment(table.value()) : trusted_comment)});
}

}  // namespace x0x::policyc
