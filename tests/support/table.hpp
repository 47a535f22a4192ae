// Tables for tests: a policy compiled and signed in memory with a fixed key, opened the way a node opens it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "enforcer/blob_view.hpp"
#include "enforcer/decide.hpp"
#include "policyc/policy.hpp"

namespace x0x::test {

using ByteVector = std::vector<std::uint8_t>;

// Key pairs made from a seed of one repeated byte; number is that byte eight times.
struct TestKey {
  explicit TestKey(std::uint8_t seed);
  std::array<std::uint8_t, 8> number;
  std::array<std::uint8_t, 32> public_key;
  std::array<std::uint8_t, 64> secret_key;
};

TrustedKeys trust(const std::vector<TestKey>& keys, std::uint32_t threshold);

// payload, records and trailer, exactly as given
ByteVector assemble(const ByteVector& payload, const std::vector<ByteVector>& records);
ByteVector signature_record(const ByteVector& payload, const TestKey& key, const std::string& comment = "test");
ByteVector sign(const ByteVector& payload, const TestKey& key = TestKey(1));

// A table that owns its bytes.
struct OpenTable {
  ByteVector file;
  Fault fault = Fault::none;
  BlobView view;
};
OpenTable open_file(ByteVector file, const TrustedKeys& trusted);
OpenTable open_signed(const ByteVector& payload);
OpenTable open_policy(const policyc::Policy& policy);

// Building policies by hand: "<INT>" and "prefix<URL_PATH>" are templates, anything else a literal.
policyc::Token token(const std::string& text);
policyc::Command command(const std::vector<std::string>& argv);
policyc::Id id(std::uint8_t byte);
policyc::Entry entry(std::uint8_t agent, std::uint8_t machine, const std::vector<std::vector<std::string>>& argvs);
policyc::Policy policy(const std::vector<policyc::Entry>& entries);

// A request that owns its bytes.
struct OwnedRequest {
  policyc::Id agent{}, machine{};
  std::vector<std::string> argv;
  bool cwd_present = false;
  std::uint64_t stdin_bytes = 0;
  std::uint32_t timeout_ms = 0;
};
Verdict decide(const BlobView& table, const OwnedRequest& request, std::uint64_t now = 1'800'000'000);

inline Bytes bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace x0x::test
