#include "policyc/minisign.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "enforcer/verify.hpp"
#include "policyc/read_file.hpp"
#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

constexpr std::string_view kUntrustedPrefix = "untrusted comment: ";
constexpr std::string_view kTrustedPrefix = "trusted comment: ";
constexpr std::size_t kMaxUntrustedComment = 1000;  // minisign keeps a whole comment line in 1024 bytes
constexpr int kBase64 = sodium_base64_VARIANT_ORIGINAL;

constexpr std::size_t kMaxKeyFileBytes = 4096;
constexpr std::size_t kPublicKeyBytes = 42;   // "Ed", key number, key
constexpr std::size_t kMinisigBytes = 74;     // "ED", key number, signature
constexpr std::size_t kSecretKeyBytes = 158;  // the fields below

// Fields of a secret key file, after base64.
constexpr std::size_t kSignatureAlgorithm = 0, kKdfAlgorithm = 2, kChecksumAlgorithm = 4, kSalt = 6, kOperations = 38,
                      kMemory = 46, kNumber = 54, kSecret = 62, kChecksum = 126;
constexpr std::size_t kSealedBytes = kSecretKeyBytes - kNumber;  // what the password covers

[[noreturn]] void refuse(const std::string& name, std::string_view what) {
  throw UserError(fmt::format("`{}` {}", name, what), kExitRefused);
}

// The next line without its line break.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The number of bytes that `base64` stands for, or nothing if it is not base64 or does not fit.
std::optional<std::size_t> decode_base64(std::string_view base64, std::span<std::uint8_t> bytes) {
  std::size_t length = 0;
  if (sodium_base642bin(bytes.data(), bytes.size(), base64.data(), base64.size(), nullptr, &length, nullptr, kBase64) !=
      0)
    return std::nullopt;
  return length;
}

std::string encode_base64(std::span<const std::uint8_t> bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kBase64), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kBase64);
  text.pop_back();  // the NUL
  return text;
}

bool is_at(std::span<const std::uint8_t> bytes, std::size_t offset, std::string_view letters) {
  return std::memcmp(bytes.data() + offset, letters.data(), letters.size()) == 0;
}

void store_u64(std::uint8_t* p, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) p[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

void compute_checksum(std::span<const std::uint8_t> raw, std::uint8_t* checksum) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, 32);
  crypto_generichash_update(&state, raw.data() + kSignatureAlgorithm, 2);
  crypto_generichash_update(&state, raw.data() + kNumber, kChecksum - kNumber);
  crypto_generichash_final(&state, checksum, 32);
  sodium_memzero(&state, sizeof state);
}

// The password's stream over number, key and checksum: sealing and unsealing are the same.
void seal(std::span<std::uint8_t> raw, const SecretBytes& password, PasswordCost cost) {
  SecretBytes stream(kSealedBytes);
  say_deriving();
  if (crypto_pwhash_scryptsalsa208sha256(stream.data(), stream.size(), reinterpret_cast<const char*>(password.data()),
                                         password.size(), raw.data() + kSalt, cost.operations,
                                         static_cast<std::size_t>(cost.memory_bytes)) != 0)
    throw UserError(
        fmt::format("not enough memory to derive the key from the password; it takes {} MiB", cost.memory_bytes >> 20));
  for (std::size_t i = 0; i < kSealedBytes; ++i) raw[kNumber + i] ^= stream.data()[i];
}

void unseal(SecretBytes& raw, const std::string& name, const PasswordSource& source) {
  const PasswordCost cost{load_u64(raw.data() + kOperations), load_u64(raw.data() + kMemory)};
  if (cost.operations > PasswordCost{}.operations || cost.memory_bytes > PasswordCost{}.memory_bytes)
    refuse(name, "asks for more work on its password than minisign ever does; the file is damaged");
  seal(raw.span(), ask_password(source, fmt::format("Password for {}: ", name)), cost);
  std::uint8_t checksum[32];
  compute_checksum(raw.span(), checksum);
  if (sodium_memcmp(checksum, raw.data() + kChecksum, sizeof checksum) != 0)
    refuse(name, "does not open with this password");
}

// A key without a password carries minisign's zeroes for a checksum, or a checksum.
void check_open_key(const SecretBytes& raw, const std::string& name) {
  std::uint8_t checksum[32];
  compute_checksum(raw.span(), checksum);
  if (sodium_is_zero(raw.data() + kChecksum, sizeof checksum) != 1 &&
      sodium_memcmp(checksum, raw.data() + kChecksum, sizeof checksum) != 0)
    refuse(name, "is damaged: its checksum does not match");
}

SecretBytes decode_secret_key(std::string_view text, const std::string& name) {
  if (next_line(text).starts_with(kUntrustedPrefix) == false)
    refuse(name, "is not a minisign secret key: its first line must be `untrusted comment: …`");
  const std::string_view base64 = next_line(text);
  SecretBytes raw(kSecretKeyBytes);
  const std::optional<std::size_t> length = decode_base64(base64, raw.span());
  if (length == kPublicKeyBytes) refuse(name, "is a public key; the secret key is needed here");
  if (length == kMinisigBytes) refuse(name, "is a signature; a secret key is needed here");
  if (length != kSecretKeyBytes) refuse(name, "is not a minisign secret key: its second line is damaged or cut short");
  if (!text.empty()) refuse(name, "is not a minisign secret key: it goes on after its second line");
  if (!is_at(raw.span(), kSignatureAlgorithm, "Ed") || !is_at(raw.span(), kChecksumAlgorithm, "B2"))
    refuse(name, "is a key of a kind that this program does not know");
  return raw;
}

}  // namespace

std::string key_id(const KeyNumber& number) { return fmt::format("{:016X}", load_u64(number.data())); }

std::vector<PublicKey> parse_public_keys(Bytes text, const std::string& name) {
  const Result<TrustedKeys> parsed = parse_trust(text);
  if (!parsed.ok()) refuse(name, fmt::format("is not a minisign public key ({})", fault_name(parsed.fault())));
  std::vector<PublicKey> keys(parsed.value().count);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::ranges::copy(parsed.value().keys[i].number, keys[i].number.begin());
    std::ranges::copy(parsed.value().keys[i].key, keys[i].key.begin());
  }
  return keys;
}

std::vector<PublicKey> load_public_keys(const std::vector<std::string>& paths) {
  std::vector<PublicKey> keys;
  for (const std::string& path : paths) {
    const std::vector<PublicKey> more = parse_public_keys(read_file(path, kMaxTrustFileBytes), path);
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

std::string format_public_key(const PublicKey& key, const std::string& untrusted_comment) {
  check_comment(untrusted_comment, kMaxUntrustedComment);
  std::vector<std::uint8_t> raw{'E', 'd'};
  raw.insert(raw.end(), key.number.begin(), key.number.end());
  raw.insert(raw.end(), key.key.begin(), key.key.end());
  return fmt::format("{}{}\n{}\n", kUntrustedPrefix, untrusted_comment, encode_base64(raw));
}

Signature parse_minisig(std::string_view text, const std::string& name) {
  const std::string_view untrusted = next_line(text), signature = next_line(text), trusted = next_line(text),
                         global = next_line(text);
  if (!untrusted.starts_with(kUntrustedPrefix))
    refuse(name, "is not a minisign signature: its first line must be `untrusted comment: …`");
  std::array<std::uint8_t, kMinisigBytes> raw{};
  if (decode_base64(signature, raw) != kMinisigBytes)
    refuse(name, "is not a minisign signature: its second line is damaged or cut short");
  if (is_at(raw, 0, "Ed"))
    refuse(name, "is a legacy minisign signature, over the file and not over its hash; sign again without `-l`");
  if (!is_at(raw, 0, "ED")) refuse(name, "is a signature of a kind that this program does not know");
  if (!trusted.starts_with(kTrustedPrefix))
    refuse(name, "is not a minisign signature: its third line must be `trusted comment: …`");
  Signature parsed;
  if (decode_base64(global, parsed.global_signature) != parsed.global_signature.size())
    refuse(name, "is not a minisign signature: its fourth line is damaged or cut short");
  if (!text.empty()) refuse(name, "is not a minisign signature: it goes on after its fourth line");
  std::copy_n(raw.begin() + 2, parsed.number.size(), parsed.number.begin());
  std::copy_n(raw.begin() + 10, parsed.signature.size(), parsed.signature.begin());
  parsed.trusted_comment = trusted.substr(kTrustedPrefix.size());
  if (parsed.trusted_comment.size() > blob::kMaxTrustedCommentBytes)
    refuse(name, fmt::format("has a trusted comment of {} bytes, and a table holds {}; sign again with a shorter "
                             "one: `minisign -S -t TEXT`",
                             parsed.trusted_comment.size(), blob::kMaxTrustedCommentBytes));
  return parsed;
}

std::string format_minisig(const Signature& signature) {
  check_comment(signature.trusted_comment, blob::kMaxTrustedCommentBytes);
  std::vector<std::uint8_t> raw{'E', 'D'};
  raw.insert(raw.end(), signature.number.begin(), signature.number.end());
  raw.insert(raw.end(), signature.signature.begin(), signature.signature.end());
  return fmt::format("{}signature by key {}\n{}\n{}{}\n{}\n", kUntrustedPrefix, key_id(signature.number),
                     encode_base64(raw), kTrustedPrefix, signature.trusted_comment,
                     encode_base64(signature.global_signature));
}

void check_comment(std::string_view text, std::size_t max_bytes) {
  if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    throw UserError("a comment of minisign is one line, and this one holds a line break or a NUL", kExitRefused);
  if (text.size() > max_bytes)
    throw UserError(fmt::format("the comment has {} bytes; at most {} fit", text.size(), max_bytes), kExitRefused);
}

PublicKey SecretKey::public_key() const {
  PublicKey result{number, {}};
  std::copy_n(key.data() + 32, result.key.size(), result.key.begin());  // libsodium keeps it behind the seed
  return result;
}

SecretKey generate_key() {
  SecretKey key{{}, SecretBytes(crypto_sign_SECRETKEYBYTES)};
  randombytes_buf(key.number.data(), key.number.size());
  std::uint8_t public_half[crypto_sign_PUBLICKEYBYTES];
  crypto_sign_keypair(public_half, key.key.data());
  return key;
}

SecretBytes format_secret_key(const SecretKey& key, const std::string& untrusted_comment, const SecretBytes* password,
                              PasswordCost cost) {
  check_comment(untrusted_comment, kMaxUntrustedComment);
  SecretBytes raw(kSecretKeyBytes);
  std::memcpy(raw.data() + kSignatureAlgorithm, "Ed", 2);
  std::memcpy(raw.data() + kChecksumAlgorithm, "B2", 2);
  std::ranges::copy(key.number, raw.data() + kNumber);
  std::ranges::copy(key.key.span(), raw.data() + kSecret);
  if (password != nullptr) {
    std::memcpy(raw.data() + kKdfAlgorithm, "Sc", 2);
    randombytes_buf(raw.data() + kSalt, kOperations - kSalt);
    store_u64(raw.data() + kOperations, cost.operations);
    store_u64(raw.data() + kMemory, cost.memory_bytes);
    compute_checksum(raw.span(), raw.data() + kChecksum);
    seal(raw.span(), *password, cost);
  }
  const std::size_t head = kUntrustedPrefix.size() + untrusted_comment.size() + 1;
  const std::size_t body = sodium_base64_encoded_len(raw.size(), kBase64);  // counts a NUL
  SecretBytes text(head + body);
  std::uint8_t* out = std::ranges::copy(kUntrustedPrefix, text.data()).out;
  out = std::ranges::copy(untrusted_comment, out).out;
  *out++ = '\n';
  sodium_bin2base64(reinterpret_cast<char*>(out), body, raw.data(), raw.size(), kBase64);
  out[body - 1] = '\n';
  return text;
}

SecretKey parse_secret_key(std::string_view text, const std::string& name, const PasswordSource& password) {
  start_crypto();
  SecretBytes raw = decode_secret_key(text, name);
  if (is_at(raw.span(), kKdfAlgorithm, "Sc"))
    unseal(raw, name, password);
  else if (is_at(raw.span(), kKdfAlgorithm, std::string_view("\0\0", 2)))
    check_open_key(raw, name);
  else
    refuse(name, "protects its key in a way that this program does not know");

  SecretKey key{{}, SecretBytes(crypto_sign_SECRETKEYBYTES)};
  std::uint8_t public_half[crypto_sign_PUBLICKEYBYTES];
  crypto_sign_seed_keypair(public_half, key.key.data(), raw.data() + kSecret);
  // With a wrong public half a signature would give the secret away, and an open key has no other checksum.
  if (sodium_memcmp(key.key.data(), raw.data() + kSecret, key.key.size()) != 0)
    refuse(name, "is damaged: its two halves are not of one key");
  std::copy_n(raw.data() + kNumber, key.number.size(), key.number.begin());
  return key;
}

SecretKey load_secret_key(const std::string& path, const PasswordSource& password) {
  forbid_core_dumps();
  const SecretBytes text = read_secret_file(path, kMaxKeyFileBytes);
  return parse_secret_key(text.text(), path, password);
}

}  // namespace x0x::policyc
