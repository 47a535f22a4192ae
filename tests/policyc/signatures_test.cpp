#include "policyc/signatures.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "policyc/ephemeral.hpp"
#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"
#include "tests/support/sample_payload.hpp"

namespace x0x::policyc {
namespace {

TrustedKeys pin(const std::vector<const SecretKey*>& keys, std::uint32_t threshold) {
  TrustedKeys trusted{};
  for (const SecretKey* key : keys) {
    TrustedKey& pinned = trusted.keys[trusted.count++];
    const PublicKey public_key = key->public_key();
    std::ranges::copy(public_key.number, pinned.number);
    std::ranges::copy(public_key.key, pinned.key);
  }
  trusted.threshold = threshold;
  return trusted;
}

SecretKey key_with_number(std::uint8_t first_byte) {
  SecretKey key = generate_key();
  key.number[0] = first_byte;
  return key;
}

TEST_CASE("a signed table is what the enforcer verifies and opens") {
  const SecretKey key = generate_key();
  const std::vector<std::uint8_t> payload = sample_payload();
  const std::vector<std::uint8_t> file = sign_table(payload, key, "");
  const Result<VerifiedBytes> verified = verify(UntrustedBytes{file}, pin({&key}, 1));
  REQUIRE(verified.ok());
  CHECK(std::ranges::equal(verified.value().payload(), payload));
  CHECK(BlobView::open(verified.value()).value().header().policy_version == 42);
}

TEST_CASE("the same payload and key give the same file") {
  const SecretKey key = generate_key();
  CHECK(sign_table(sample_payload(), key, "") == sign_table(sample_payload(), key, ""));
}

TEST_CASE("the default comment says what was signed") {
  std::vector<std::uint8_t> storage;
  const Result<BlobView> table = open_payload(sample_payload(), storage);
  REQUIRE(table.ok());
  const std::string comment = default_trusted_comment(table.value());
  CHECK(comment.starts_with("x0x-policy edge v42 digest "));
  CHECK(comment.size() == 27 + 64);
  const SignedTable parts = take_apart(sign_table(sample_payload(), generate_key(), ""), "t");
  CHECK(parts.signatures[0].trusted_comment == comment);
}

TEST_CASE("a name that does not belong into a comment is left out of it") {
  for (const std::string& name : {std::string("a\x1b[2Jb"), std::string("a\nb"), std::string(200, 'n')}) {
    Policy policy = sample_policy();
    policy.name = name;
    std::vector<std::uint8_t> storage;
    const Result<BlobView> table = open_payload(emit(policy), storage);
    REQUIRE(table.ok());
    CHECK(default_trusted_comment(table.value()).starts_with("x0x-policy v42 digest "));
  }
}

TEST_CASE("taking apart and putting together is the identity") {
  const SecretKey a = key_with_number(1), b = key_with_number(2);
  SignedTable parts = take_apart(sign_table(sample_payload(), b, "by b"), "t");
  add_signature(parts.signatures, sign_payload(parts.payload, a, ""));
  const std::vector<std::uint8_t> file = assemble(parts.payload, parts.signatures);
  const SignedTable again = take_apart(file, "t");
  CHECK(again.payload == sample_payload());
  CHECK(assemble(again.payload, again.signatures) == file);
  CHECK(verify(UntrustedBytes{file}, pin({&a, &b}, 2)).ok());
}

TEST_CASE("the order of signing does not show") {
  const SecretKey a = key_with_number(1), b = key_with_number(2), c = key_with_number(3);
  const std::vector<std::uint8_t> payload = sample_payload();
  std::vector<Signature> forwards, backwards;
  for (const SecretKey* key : {&a, &b, &c}) add_signature(forwards, sign_payload(payload, *key, "x"));
  for (const SecretKey* key : {&c, &b, &a}) add_signature(backwards, sign_payload(payload, *key, "x"));
  CHECK(assemble(payload, forwards) == assemble(payload, backwards));
  CHECK(forwards[0].number == a.number);
}

TEST_CASE("a key signs a table once: the newer signature stays") {
  const SecretKey a = key_with_number(1), b = key_with_number(2);
  const std::vector<std::uint8_t> payload = sample_payload();
  std::vector<Signature> signatures;
  add_signature(signatures, sign_payload(payload, a, "old"));
  add_signature(signatures, sign_payload(payload, b, "other"));
  add_signature(signatures, sign_payload(payload, a, "new"));
  REQUIRE(signatures.size() == 2);
  CHECK(signatures[0].trusted_comment == "new");
  CHECK(signatures[1].trusted_comment == "other");
}

TEST_CASE("no more signatures than the reader takes") {
  std::vector<Signature> signatures;
  for (std::uint8_t i = 0; i < blob::kMaxSignatures; ++i) add_signature(signatures, Signature{{i}, {}, {}, ""});
  CHECK_NOTHROW(add_signature(signatures, Signature{{0}, {}, {}, "again"}));
  CHECK_THROWS_AS(add_signature(signatures, Signature{{99}, {}, {}, ""}), UserError);
}

TEST_CASE("a signature is checked against its key, its payload and its comment") {
  const SecretKey key = generate_key();
  std::vector<std::uint8_t> payload = sample_payload();
  Signature signature = sign_payload(payload, key, "by me");
  const PublicKey good = key.public_key();
  CHECK(check_signature(payload, signature, good) == SignatureCheck::good);
  CHECK(check_signature(payload, signature, generate_key().public_key()) == SignatureCheck::wrong_key);
  PublicKey impostor = generate_key().public_key();
  impostor.number = good.number;
  CHECK(check_signature(payload, signature, impostor) == SignatureCheck::bad_signature);
  signature.trusted_comment = "by you";
  CHECK(check_signature(payload, signature, good) == SignatureCheck::bad_comment);
  payload.back() ^= 1;
  CHECK(check_signature(payload, signature, good) == SignatureCheck::bad_signature);
}

TEST_CASE("a comment that no record can hold is not signed") {
  const SecretKey key = generate_key();
  CHECK_NOTHROW(sign_table(sample_payload(), key, std::string(255, 'c')));
  CHECK_THROWS_AS(sign_table(sample_payload(), key, std::string(256, 'c')), UserError);
  CHECK_THROWS_AS(sign_table(sample_payload(), key, "two\nlines"), UserError);
}

TEST_CASE("what is not a table is neither opened nor signed") {
  const SecretKey key = generate_key();
  std::vector<std::uint8_t> storage;
  std::vector<std::uint8_t> payload = sample_payload();
  payload[offsetof(blob::Header, format_version)] = 9;
  CHECK(open_payload(payload, storage).fault() == Fault::unknown_version);
  CHECK_THROWS_AS(sign_table(payload, key, ""), UserError);
  CHECK(open_payload({}, storage).fault() == Fault::truncated);
  CHECK_THROWS_AS(take_apart({}, "t"), UserError);
  CHECK_THROWS_WITH(take_apart(sample_payload(), "t"), "t: bad_magic: this is not a decision table");
}

}  // namespace
}  // namespace x0x::policyc
