// minisign's own files, byte for byte: public keys, secret keys with and without a password, signatures.
//
// A key made here works in the stock program and the other way round; tests/policyc/minisign_test.cpp and
// tests/policyc/keys_cli_test.cpp run it in both directions. Only pre-hashed `ED` signatures exist here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "enforcer/fault.hpp"
#include "policyc/password.hpp"
#include "policyc/secret.hpp"

namespace x0x::policyc {

using KeyNumber = std::array<std::uint8_t, 8>;
using SignatureBytes = std::array<std::uint8_t, 64>;

// As minisign shows it: 16 upper-case hexadecimal digits, the last byte first.
std::string key_id(const KeyNumber& number);

struct PublicKey {
  KeyNumber number{};
  std::array<std::uint8_t, 32> key{};
};

// Keys one after another, with or without comment lines: a public key file, or a whole trust file.
std::vector<PublicKey> parse_public_keys(Bytes text, const std::string& name);
std::vector<PublicKey> load_public_keys(const std::vector<std::string>& paths);
std::string format_public_key(const PublicKey& key, const std::string& untrusted_comment);

// A signature and the comment that is signed with it: a .minisig file, or a record of a table.
struct Signature {
  KeyNumber number{};
  SignatureBytes signature{};         // over the BLAKE2b-512 of what is signed
  SignatureBytes global_signature{};  // over `signature` and the trusted comment
  std::string trusted_comment;
};

Signature parse_minisig(std::string_view text, const std::string& name);
std::string format_minisig(const Signature& signature);

// Throws unless the text can stand on one comment line: no line break, no NUL, at most `max_bytes`.
void check_comment(std::string_view text, std::size_t max_bytes);

struct SecretKey {
  KeyNumber number{};
  SecretBytes key;  // seed and public key, as libsodium wants it

  PublicKey public_key() const;
};

SecretKey generate_key();

// How much work a password costs. minisign always writes the greatest values, and so does keygen.
struct PasswordCost {
  std::uint64_t operations = 33'554'432;
  std::uint64_t memory_bytes = 1'073'741'824;
};

// The file's text. Without a password the key stands in it as it is.
SecretBytes format_secret_key(const SecretKey& key, const std::string& untrusted_comment, const SecretBytes* password,
                              PasswordCost cost = {});

// `password` is asked only if the key is protected by one.
SecretKey parse_secret_key(std::string_view text, const std::string& name, const PasswordSource& password);
SecretKey load_secret_key(const std::string& path, const PasswordSource& password);

}  // namespace x0x::policyc
