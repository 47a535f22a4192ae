#include "policyc/minisign.hpp"

#include <doctest/doctest.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"
#include "tests/support/password_pipe.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

const PasswordCost kCheap{crypto_pwhash_scryptsalsa208sha256_OPSLIMIT_MIN,
                          crypto_pwhash_scryptsalsa208sha256_MEMLIMIT_MIN};

SecretBytes secret(std::string_view text) {
  SecretBytes bytes(text.size());
  std::ranges::copy(text, bytes.data());
  return bytes;
}

// Made by `minisign -G -W`.
constexpr const char* kStockPublic =
    "untrusted comment: minisign public key 6D43DA7D97DC25E5\n"
    "RWTlJdyXfdpDbdXXCqlqGLAxrFNFkFE5hp3PqgFzCVq/V97wSUpD45Bf\n";
constexpr const char* kStockSecret =
    "untrusted comment: minisign encrypted secret key\n"
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA5SXcl33aQ23zwiuW/"
    "5f4jnQxueOyV1g+iMYusPPT7tHKXGb5jfY+JdXXCqlqGLAxrFNFkFE5hp3PqgFzCVq/"
    "V97wSUpD45BfAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
// Made by `minisign -S -t tc` with that key, over the five bytes of `hello`.
constexpr const char* kStockMinisig =
    "untrusted comment: signature from minisign secret key\n"
    "RUTlJdyXfdpDbT2tPznrZHQqZVSBSfqdK0CZXgK8/gh4zeTU5ElZ4NM7HArOEctvxqOHwubr6j4T3Iq5n/pn80bXW9yShJWfRAM=\n"
    "trusted comment: tc\n"
    "MBOMQ8Bavxz/1sKA4fSgBAQIrJ1BCzzQPxx8jwEOPu2B1FhJBpuFpwst0WCmniDWljgLiyNrL1rJFF1xFsApDw==\n";

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::string with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

template <class Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const UserError& error) {
    CHECK(error.exit_code == kExitRefused);
    return error.what();
  }
  return "";
}

std::string secret_refusal(const std::string& text) {
  return refusal([&] { parse_secret_key(text, "k", PasswordSource{0}); });
}
std::string minisig_refusal(const std::string& text) {
  return refusal([&] { parse_minisig(text, "m"); });
}
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("the stock program's public key is read, shown and written back byte for byte") {
  const std::vector<PublicKey> keys = parse_public_keys(bytes_of(kStockPublic), "p");
  REQUIRE(keys.size() == 1);
  CHECK(key_id(keys[0].number) == "6D43DA7D97DC25E5");
  CHECK(format_public_key(keys[0], "minisign public key 6D43DA7D97DC25E5") == kStockPublic);
}

TEST_CASE("the stock program's secret key is read and written back byte for byte") {
  const SecretKey key = parse_secret_key(kStockSecret, "k", PasswordSource{});
  CHECK(format_secret_key(key, "minisign encrypted secret key", nullptr).text() == kStockSecret);
  const PublicKey expected = parse_public_keys(bytes_of(kStockPublic), "p")[0];
  CHECK(key.public_key().key == expected.key);
  CHECK(key.public_key().number == expected.number);
}

TEST_CASE("the stock program's signature is read and written back, all but the untrusted line") {
  const Signature signature = parse_minisig(kStockMinisig, "m");
  CHECK(key_id(signature.number) == "6D43DA7D97DC25E5");
  CHECK(signature.trusted_comment == "tc");
  CHECK(format_minisig(signature) ==
        with(kStockMinisig, "signature from minisign secret key", "signature by key 6D43DA7D97DC25E5"));
}

TEST_CASE("line breaks of another system are no difference") {
  std::string text = kStockMinisig;
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  CHECK(format_minisig(parse_minisig(text, "m")) == format_minisig(parse_minisig(kStockMinisig, "m")));
}

TEST_CASE("a key with a password opens with it and with no other") {
  const SecretKey key = generate_key();
  const SecretBytes right = secret("correct horse");
  const std::string file(format_secret_key(key, "c", &right, kCheap).text());
  CHECK(format_secret_key(key, "c", &right, kCheap).text() != file);  // fresh salt
  {
    const PasswordPipe pipe("correct horse\nnot read");
    const SecretKey opened = parse_secret_key(file, "k", pipe.source());
    CHECK(opened.number == key.number);
    CHECK(opened.key.text() == key.key.text());
  }
  const auto open_with = [&](const char* line) {
    const PasswordPipe pipe(line);
    return refusal([&] { parse_secret_key(file, "k", pipe.source()); });
  };
  CHECK(open_with("correct horse") == "");
  CHECK(open_with("correct horse\r\n") == "");
  CHECK(open_with("wrong") == "`k` does not open with this password");
  CHECK(has(open_with(""), "the password is empty"));
  CHECK(has(open_with("\n"), "the password is empty"));
  CHECK(has(open_with(std::string(2000, 'x').c_str()), "longer than"));
}

TEST_CASE("a damaged key with a password is refused before it costs anything") {
  const SecretBytes password = secret("pw");
  const std::string file(format_secret_key(generate_key(), "c", &password, kCheap).text());
  const std::size_t costs = file.find('\n') + 1 + 52;  // characters within the two costs
  CHECK(has(secret_refusal(file.substr(0, costs) + "////" + file.substr(costs + 4)), "more work"));
}

TEST_CASE("a password that cannot be read is an error, not a wrong password") {
  try {
    ask_password(PasswordSource{999}, "");
    FAIL("read from nowhere");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()) == "cannot read the password from descriptor 999: Bad file descriptor");
    CHECK(error.exit_code == kExitUsage);
  }
}

TEST_CASE("each kind of damage to a secret key file has its message") {
  const std::string good = kStockSecret;
  CHECK(secret_refusal(good) == "");
  CHECK(has(secret_refusal(""), "first line"));
  CHECK(has(secret_refusal(with(good, "untrusted", "trusted")), "first line"));
  CHECK(has(secret_refusal(with(good, "RWQ", "R!Q")), "second line is damaged"));
  CHECK(has(secret_refusal(good.substr(0, good.size() - 20)), "second line is damaged"));
  CHECK(has(secret_refusal(good.substr(0, 60)), "second line is damaged"));
  CHECK(has(secret_refusal(good.substr(0, good.find('\n') + 1)), "second line is damaged"));
  CHECK(has(secret_refusal(good + "more\n"), "goes on"));
  CHECK(has(secret_refusal(kStockPublic), "is a public key"));
  CHECK(has(secret_refusal(kStockMinisig), "is a signature"));
  CHECK(has(secret_refusal(with(good, "RWQ", "RWX")), "does not know"));         // another kind of protection
  CHECK(has(secret_refusal(with(good, "RWQ", "SWQ")), "does not know"));         // another kind of key
  CHECK(has(secret_refusal(with(good, "+iMYus", "+iNYus")), "two halves"));      // a bit of the seed
  CHECK(has(secret_refusal(with(good, "AAAAAA=\n", "AAAAAE=\n")), "checksum"));  // neither zero nor right
}

TEST_CASE("each kind of damage to a signature file has its message") {
  const std::string good = kStockMinisig;
  CHECK(minisig_refusal(good) == "");
  CHECK(has(minisig_refusal(""), "first line"));
  CHECK(has(minisig_refusal(with(good, "RUT", "R?T")), "second line"));
  CHECK(has(minisig_refusal(good.substr(0, 100)), "second line"));
  CHECK(has(minisig_refusal(with(good, "RUT", "RWT")), "legacy"));
  CHECK(has(minisig_refusal(with(good, "RUT", "RVT")), "does not know"));
  CHECK(has(minisig_refusal(with(good, "\ntrusted", "\nrusted")), "third line"));
  CHECK(has(minisig_refusal(with(good, "MBOM", "MB M")), "fourth line"));
  CHECK(has(minisig_refusal(good.substr(0, good.find("MBOM"))), "fourth line"));
  CHECK(has(minisig_refusal(good + "x"), "goes on"));
  CHECK(minisig_refusal(with(good, ": tc", ": " + std::string(255, 'c'))) == "");
  CHECK(has(minisig_refusal(with(good, ": tc", ": " + std::string(256, 'c'))), "256 bytes"));
}

TEST_CASE("what is not a public key is refused by the enforcer's own parser") {
  const auto public_refusal = [](const std::string& text) {
    return refusal([&] { parse_public_keys(bytes_of(text), "p"); });
  };
  CHECK(public_refusal(kStockSecret) == "`p` is not a minisign public key (trust_bad_key)");
  CHECK(has(public_refusal(""), "trust_no_keys"));
  CHECK(has(public_refusal(std::string(kStockPublic) + kStockPublic), "trust_duplicate_key"));
}

TEST_CASE("a comment is one line within its bound") {
  CHECK_NOTHROW(check_comment("timestamp:1\tfile:x", 255));
  CHECK_THROWS_AS(check_comment("two\nlines", 255), UserError);
  CHECK_THROWS_AS(check_comment("return\r", 255), UserError);
  CHECK_THROWS_AS(check_comment(std::string_view("nul\0", 4), 255), UserError);
  CHECK_NOTHROW(check_comment(std::string(255, 'c'), 255));
  CHECK_THROWS_AS(check_comment(std::string(256, 'c'), 255), UserError);
}

TEST_CASE("loading a secret key turns core dumps off") {
  const Scratch scratch;
  load_secret_key(scratch.put("k", kStockSecret), PasswordSource{});
  CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  CHECK(limit.rlim_cur == 0);
}

TEST_CASE("loading: a missing file, a directory and a huge file give one line") {
  const Scratch scratch;
  CHECK_THROWS_WITH(load_secret_key("/nowhere/k", PasswordSource{}),
                    "cannot read `/nowhere/k`: No such file or directory");
  CHECK_THROWS_WITH(load_secret_key("/", PasswordSource{}), "cannot read `/`: Is a directory");
  CHECK_THROWS_AS(load_secret_key(scratch.put("big", std::string(5000, 'x')), PasswordSource{}), UserError);
}

}  // namespace
}  // namespace x0x::policyc
