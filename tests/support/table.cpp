#include "tests/support/table.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "policyc/emit.hpp"

namespace x0x::test {

TestKey::TestKey(std::uint8_t seed_byte) {
  std::array<std::uint8_t, 32> seed;
  seed.fill(seed_byte);
  number.fill(seed_byte);
  crypto_sign_seed_keypair(public_key.data(), secret_key.data(), seed.data());
}

TrustedKeys trust(const std::vector<TestKey>& keys, std::uint32_t threshold) {
  TrustedKeys trusted{};
  for (const TestKey& key : keys) {
    TrustedKey& to = trusted.keys[trusted.count++];
    std::copy(key.number.begin(), key.number.end(), to.number);
    std::copy(key.public_key.begin(), key.public_key.end(), to.key);
  }
  trusted.threshold = threshold;
  return trusted;
}

ByteVector assemble(const ByteVector& payload, const std::vector<ByteVector>& records) {
  ByteVector file = payload;
  std::uint32_t size = 0;
  for (const ByteVector& record : records) {
    file.insert(file.end(), record.begin(), record.end());
    size += static_cast<std::uint32_t>(record.size());
  }
  for (const std::uint32_t number : {static_cast<std::uint32_t>(records.size()), size})
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  file.insert(file.end(), blob::kTrailerMagic, blob::kTrailerMagic + 8);
  return file;
}

ByteVector signature_record(const ByteVector& payload, const TestKey& key, const std::string& comment) {
  std::array<std::uint8_t, 64> hash, signature, global;
  crypto_generichash(hash.data(), hash.size(), payload.data(), payload.size(), nullptr, 0);
  crypto_sign_detached(signature.data(), nullptr, hash.data(), hash.size(), key.secret_key.data());
  ByteVector signed_comment(signature.begin(), signature.end());
  signed_comment.insert(signed_comment.end(), comment.begin(), comment.end());
  crypto_sign_detached(global.data(), nullptr, signed_comment.data(), signed_comment.size(), key.secret_key.data());
  ByteVector record(key.number.begin(), key.number.end());
  record.insert(record.end(), signature.begin(), signature.end());
  record.insert(record.end(), global.begin(), global.end());
  record.push_back(static_cast<std::uint8_t>(comment.size()));
  record.insert(record.end(), comment.begin(), comment.end());
  return record;
}

ByteVector sign(const ByteVector& payload, const TestKey& key) {
  return assemble(payload, {signature_record(payload, key)});
}

OpenTable open_file(ByteVector file, const TrustedKeys& trusted) {
  OpenTable table;
  table.file = std::move(file);
  const Result<VerifiedBytes> verified = verify({table.file}, trusted);
  table.fault = verified.fault();
  if (!verified.ok()) return table;
  const Result<BlobView> opened = BlobView::open(verified.value());
  table.fault = opened.fault();
  table.view = opened.value();
  return table;
}

OpenTable open_signed(const ByteVector& payload) { return open_file(sign(payload), trust({TestKey(1)}, 1)); }
OpenTable open_policy(const policyc::Policy& policy) { return open_signed(policyc::emit(policy)); }

policyc::Token token(const std::string& text) {
  if (text == "<INT>") return {policyc::Token::Kind::integer, "", {}};
  if (text.ends_with("<URL_PATH>")) return {policyc::Token::Kind::url_path, text.substr(0, text.size() - 10), {}};
  return {policyc::Token::Kind::literal, text, {}};
}

policyc::Command command(const std::vector<std::string>& argv) {
  policyc::Command command;
  for (const std::string& text : argv) command.argv.push_back(token(text));
  return command;
}

policyc::Id id(std::uint8_t byte) {
  policyc::Id id;
  id.fill(byte);
  return id;
}

policyc::Entry entry(std::uint8_t agent, std::uint8_t machine, const std::vector<std::vector<std::string>>& argvs) {
  policyc::Entry entry;
  entry.agent = id(agent);
  entry.machine = id(machine);
  for (const auto& argv : argvs) entry.commands.push_back(command(argv));
  return entry;
}

policyc::Policy policy(const std::vector<policyc::Entry>& entries) {
  policyc::Policy policy;
  policy.exec.enabled = true;
  policy.version = 1;
  policy.entries = entries;
  return policy;
}

Verdict decide(const BlobView& table, const OwnedRequest& owned, std::uint64_t now) {
  std::array<std::uint8_t, 64> pair;
  std::copy(owned.agent.begin(), owned.agent.end(), pair.begin());
  std::copy(owned.machine.begin(), owned.machine.end(), pair.begin() + 32);
  std::string block;
  for (std::string text : owned.argv) {
    std::ranges::replace(text, '\0', static_cast<char>(kNulInToken));  // as a frame is read
    block.append(text).push_back('\0');
  }
  return x0x::decide(table, {pair.data(), bytes(block), owned.cwd_present, owned.stdin_bytes, owned.timeout_ms}, now);
}

}  // namespace x0x::test
