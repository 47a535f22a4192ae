// A table's signatures: taken apart, added to, put together again.
//
// Signing is deterministic and the records stand in order of key number, so the same payload and the same
// keys give the same file, whoever signed first. tests/policyc/signatures_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "enforcer/blob_view.hpp"
#include "policyc/minisign.hpp"

namespace x0x::policyc {

// Nothing is proved: the payload and who is said to have signed it.
struct SignedTable {
  std::vector<std::uint8_t> payload;
  std::vector<Signature> signatures;
};

SignedTable take_apart(Bytes file, const std::string& name);
std::vector<std::uint8_t> assemble(Bytes payload, const std::vector<Signature>& signatures);

// In its place by key number; an older signature by the same key goes.
void add_signature(std::vector<Signature>& signatures, Signature signature);

Signature sign_payload(Bytes payload, const SecretKey& key, const std::string& trusted_comment);

enum class SignatureCheck { good, wrong_key, bad_signature, bad_comment };
SignatureCheck check_signature(Bytes payload, const Signature& signature, const PublicKey& key);

// `x0x-policy NAME v42 digest 0123abcd…`: says what was signed, and no time, so that it does not change.
std::string default_trusted_comment(const BlobView& table);

// The whole file with one signature. An empty comment stands for the default.
std::vector<std::uint8_t> sign_table(Bytes payload, const SecretKey& key, const std::string& trusted_comment);

}  // namespace x0x::policyc
