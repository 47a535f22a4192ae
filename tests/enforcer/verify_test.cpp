// One test per fault of the signature block and of the trust file.
#include "enforcer/verify.hpp"

#include <doctest/doctest.h>
#include <sodium.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "policyc/emit.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

const ByteVector kPayload = {'p', 'a', 'y', 'l', 'o', 'a', 'd'};

Fault verify_fault(const ByteVector& file, const std::vector<TestKey>& keys, std::uint32_t threshold = 1) {
  return verify({file}, trust(keys, threshold)).fault();
}

std::string base64_key(const TestKey& key) {
  ByteVector raw = {'E', 'd'};
  raw.insert(raw.end(), key.number.begin(), key.number.end());
  raw.insert(raw.end(), key.public_key.begin(), key.public_key.end());
  char text[128];
  sodium_bin2base64(text, sizeof text, raw.data(), raw.size(), sodium_base64_VARIANT_ORIGINAL);
  return text;
}

Fault trust_fault(const std::string& text) { return parse_trust(bytes(text)).fault(); }

}  // namespace

TEST_CASE("a table signed by a pinned key verifies, and the payload is what was signed") {
  const ByteVector file = sign(kPayload);
  const auto verified = verify({file}, trust({TestKey(1)}, 1));
  REQUIRE(verified.ok());
  CHECK(ByteVector(verified.value().payload().begin(), verified.value().payload().end()) == kPayload);
}

TEST_CASE("bad_magic: anything without the trailer") {
  CHECK(verify_fault({}, {TestKey(1)}) == Fault::bad_magic);
  CHECK(verify_fault(kPayload, {TestKey(1)}) == Fault::bad_magic);
  CHECK(verify_fault(ByteVector(4096, 'x'), {TestKey(1)}) == Fault::bad_magic);
}

TEST_CASE("too_large: refused before anything is looked at") {
  static std::uint8_t byte = 0;
  const Bytes huge(&byte, blob::kMaxFileBytes + 1);  // never read: the size is checked first
  CHECK(open_envelope({huge}).fault() == Fault::too_large);
  void* const pages = mmap(nullptr, blob::kMaxFileBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  const Bytes largest(static_cast<const std::uint8_t*>(pages), blob::kMaxFileBytes);
  CHECK(open_envelope({largest}).fault() == Fault::bad_magic);  // looked at, and full of zeroes
  munmap(pages, blob::kMaxFileBytes);
}

TEST_CASE("unsigned_table: no signature, and signatures of nobody") {
  CHECK(verify_fault(assemble(kPayload, {}), {TestKey(1)}) == Fault::unsigned_table);
  CHECK(verify_fault(assemble({}, {}), {TestKey(1)}) == Fault::unsigned_table);  // a trailer and nothing else
}

TEST_CASE("bad_signature_block: counts and lengths that do not add up") {
  const ByteVector record = signature_record(kPayload, TestKey(1));
  ByteVector shorter = record;
  shorter.pop_back();
  CHECK(verify_fault(assemble(kPayload, {shorter}), {TestKey(1)}) == Fault::bad_signature_block);
  ByteVector longer = record;
  longer.push_back(0);
  CHECK(verify_fault(assemble(kPayload, {longer}), {TestKey(1)}) == Fault::bad_signature_block);
  ByteVector file = assemble(kPayload, {record});
  for (const std::size_t field : {file.size() - 16, file.size() - 12})
    for (const int value : {0x00, 0x02, 0x7f, 0xff}) {
      ByteVector changed = file;
      changed[field + 3] = static_cast<std::uint8_t>(value);
      if (changed == file) continue;
      CHECK(verify_fault(changed, {TestKey(1)}) == Fault::bad_signature_block);
    }
  const auto times = [&](std::uint32_t n) { return assemble(kPayload, std::vector<ByteVector>(n, record)); };
  CHECK(verify_fault(times(blob::kMaxSignatures), {TestKey(1)}) == Fault::none);
  CHECK(verify_fault(times(blob::kMaxSignatures + 1), {TestKey(1)}) == Fault::bad_signature_block);
}

TEST_CASE("untrusted_key: signed, but by none of ours") {
  CHECK(verify_fault(sign(kPayload, TestKey(2)), {TestKey(1)}) == Fault::untrusted_key);
  CHECK(verify_fault(sign(kPayload, TestKey(0)), {TestKey(1)}) == Fault::untrusted_key);  // an unused place is no key
}

TEST_CASE("bad_signature: a pinned key's number on somebody else's signature") {
  TestKey forged(2);
  forged.number = TestKey(1).number;
  CHECK(verify_fault(sign(kPayload, forged), {TestKey(1)}) == Fault::bad_signature);
  ByteVector zero = signature_record(kPayload, TestKey(1));
  std::fill(zero.begin() + 8, zero.begin() + 72, std::uint8_t{0});
  CHECK(verify_fault(assemble(kPayload, {zero}), {TestKey(1)}) == Fault::bad_signature);
}

TEST_CASE("bad_signature: a good signature over another payload") {
  const ByteVector other = {'o', 't', 'h', 'e', 'r'};
  CHECK(verify_fault(assemble(kPayload, {signature_record(other, TestKey(1))}), {TestKey(1)}) == Fault::bad_signature);
}

TEST_CASE("bad_signature: a legacy signature over the payload itself") {
  ByteVector record = signature_record(kPayload, TestKey(1));
  crypto_sign_detached(record.data() + 8, nullptr, kPayload.data(), kPayload.size(), TestKey(1).secret_key.data());
  CHECK(verify_fault(assemble(kPayload, {record}), {TestKey(1)}) == Fault::bad_signature);
}

TEST_CASE("threshold_not_met: one key twice towards a threshold of two") {
  const ByteVector record = signature_record(kPayload, TestKey(1));
  const std::vector<TestKey> keys{TestKey(1), TestKey(2)};
  CHECK(verify_fault(assemble(kPayload, {record}), keys, 2) == Fault::threshold_not_met);
  CHECK(verify_fault(assemble(kPayload, {record, record}), keys, 2) == Fault::threshold_not_met);
  CHECK(verify_fault(assemble(kPayload, {record, signature_record(kPayload, TestKey(1), "other")}), keys, 2) ==
        Fault::threshold_not_met);
  const ByteVector both = assemble(kPayload, {record, signature_record(kPayload, TestKey(2))});
  CHECK(verify_fault(both, keys, 2) == Fault::none);
}

TEST_CASE("an unknown key beside a pinned one neither helps nor hurts") {
  const ByteVector file =
      assemble(kPayload, {signature_record(kPayload, TestKey(9)), signature_record(kPayload, TestKey(1))});
  CHECK(verify_fault(file, {TestKey(1)}) == Fault::none);
  CHECK(verify_fault(file, {TestKey(1), TestKey(2)}, 2) == Fault::threshold_not_met);
}

TEST_CASE("a policy's digest is BLAKE2b-256 of the payload") {
  const auto hex = [](const std::string& text) {
    char room[65];
    return std::string(sodium_bin2hex(room, sizeof room, digest_of(bytes(text)).bytes, 32));
  };
  CHECK(hex("") == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(hex("abc") == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST_CASE("a trust file: keys one after another, comments, blank lines, CRLF, a threshold") {
  const std::string text = "untrusted comment: minisign public key 1\r\n" + base64_key(TestKey(1)) + "\r\n\n" +
                           base64_key(TestKey(2)) + "\nthreshold 2\n" + base64_key(TestKey(3));
  const auto parsed = parse_trust(bytes(text));
  REQUIRE(parsed.ok());
  CHECK(parsed.value().count == 3);
  CHECK(parsed.value().threshold == 2);
  CHECK(std::memcmp(parsed.value().keys[1].key, TestKey(2).public_key.data(), 32) == 0);
  CHECK(parse_trust(bytes(base64_key(TestKey(1)))).value().threshold == 1);
  std::string all;
  for (std::uint8_t i = 0; i < kMaxTrustedKeys; ++i) all += base64_key(TestKey(i)) + "\n";  // the first has number 0
  CHECK(parse_trust(bytes(all)).value().count == kMaxTrustedKeys);
  CHECK(parse_trust(bytes(all + "threshold 32")).value().threshold == 32);
  for (const char* digits : {":", "1/", "1:", "/9"})  // the neighbours of the digits
    CHECK_MESSAGE(trust_fault(all + "threshold " + digits) == Fault::trust_bad_threshold, digits);
}

TEST_CASE("faults of a trust file, each with its name") {
  const std::string key = base64_key(TestKey(1));
  CHECK(trust_fault("") == Fault::trust_no_keys);
  CHECK(trust_fault("untrusted comment: only a comment\n") == Fault::trust_no_keys);
  CHECK(trust_fault("threshold 1\n") == Fault::trust_no_keys);
  CHECK(trust_fault(key + "\nsome words\n") == Fault::trust_bad_line);
  CHECK(trust_fault("AAAA\n") == Fault::trust_bad_key);
  CHECK(trust_fault(key.substr(1) + "\n") == Fault::trust_bad_key);
  CHECK(trust_fault(key + "!") == Fault::trust_bad_key);
  CHECK(trust_fault("X" + key.substr(1)) == Fault::trust_bad_key);
  CHECK(trust_fault("RX" + key.substr(2)) == Fault::trust_bad_key);  // "E" and not "d"
  CHECK(trust_fault(key + "\n" + key) == Fault::trust_duplicate_key);
  TestKey renamed(1);
  renamed.number.fill(9);
  CHECK(trust_fault(key + "\n" + base64_key(renamed)) == Fault::trust_duplicate_key);
  TestKey other(2);
  other.number = TestKey(1).number;
  CHECK(trust_fault(key + "\n" + base64_key(other)) == Fault::trust_duplicate_key);
  for (const char* bad : {"0", "2", "01", "x", "", "100", "-1", "1 ", "1x", "4294967297"})
    CHECK_MESSAGE(trust_fault(key + "\nthreshold " + bad + "\n") == Fault::trust_bad_threshold, bad);
  CHECK(trust_fault(key + "\nthreshold 1\nthreshold 1\n") == Fault::trust_bad_threshold);
  std::string many;
  for (int i = 1; i <= 33; ++i) many += base64_key(TestKey(static_cast<std::uint8_t>(i))) + "\n";
  CHECK(trust_fault(many) == Fault::trust_too_many_keys);
  CHECK(trust_fault(std::string(kMaxTrustFileBytes + 1, '\n')) == Fault::trust_too_large);
  CHECK(trust_fault(std::string(kMaxTrustFileBytes, '\n')) == Fault::trust_no_keys);
}

TEST_CASE("fault names and messages are all different") {
  for (const std::size_t column : {0u, 1u}) {
    std::vector<std::string> texts;
    for (const auto& fault : kFaultTexts) texts.push_back(fault[column]);
    std::sort(texts.begin(), texts.end());
    CHECK(std::adjacent_find(texts.begin(), texts.end()) == texts.end());
  }
}
