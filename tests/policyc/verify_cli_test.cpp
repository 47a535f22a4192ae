// verify as its users meet it: what it says, and every way it refuses.
#include <doctest/doctest.h>

#include <filesystem>

#include "policyc/timestamp.hpp"
#include "tests/support/desk.hpp"

namespace x0x::policyc {
namespace {

TEST_CASE("verify says everything about a good table") {
  const Desk desk;
  Policy policy = sample_policy();
  policy.not_before = 1'700'000'000;
  policy.expires = 1'800'000'000;
  policy.audience = {"edge-1", "edge-2"};
  desk.scratch.put("edge.x0xp", sign_table(emit(policy), desk.key("alice"), ""));
  VerifyOptions options = desk.verify_options();
  options.now = 1'750'000'000;
  const Said said = desk.verify(options);
  REQUIRE(said.code == kExitOk);
  CHECK(said.err == "");
  CHECK(has(said.out, desk.table + ": verified\n"));
  CHECK(has(said.out, "policy    edge version 42\n"));
  CHECK(has(said.out, "valid     from 2023-11-14T22:13:20Z until 2027-01-15T08:00:00Z\n"));
  CHECK(has(said.out, "audience  edge-1, edge-2\n"));
  CHECK(has(said.out, "holds     1 entry, 2 commands\n"));
  CHECK(has(said.out, "signed    by 1 of 2 pinned keys, threshold 1\n"));
  CHECK(has(said.out, desk.id("alice") + "  pinned   x0x-policy edge v42 digest "));

  const nlohmann::json json = desk.verify_json(options);
  CHECK(json["verified"] == true);
  CHECK(json["fault"] == nullptr);
  CHECK(json["policy"]["name"] == "edge");
  CHECK(json["policy"]["version"] == 42);
  CHECK(json["policy"]["not_before"] == "2023-11-14T22:13:20Z");
  CHECK(json["policy"]["expires"] == "2027-01-15T08:00:00Z");
  CHECK(json["policy"]["validity"] == "valid");
  CHECK(json["policy"]["audience"] == nlohmann::json({"edge-1", "edge-2"}));
  CHECK(json["policy"]["entries"] == 1);
  CHECK(json["policy"]["commands"] == 2);
  CHECK(has(said.out, json["policy"]["digest"].get<std::string>()));
  CHECK(json["threshold"] == 1);
  CHECK(json["pinned_keys"] == 2);
  CHECK(json["pinned_signatures"] == 1);
  CHECK(json["signatures"][0]["key_id"] == desk.id("alice"));
  CHECK(json["signatures"][0]["standing"] == "pinned");
  CHECK(json["signatures"][0]["comment_ok"] == true);
}

TEST_CASE("verify hints at a window that is closed, and at a policy without one") {
  const Desk desk;
  CHECK(has(desk.verify().out, "valid     without expiry\n"));
  CHECK(has(desk.verify().out, "audience  any node\n"));
  Policy policy = sample_policy();
  policy.name.reset();
  policy.exec.enabled = false;
  policy.not_before = 1'700'000'000;
  policy.expires = 1'800'000'000;
  desk.scratch.put("edge.x0xp", sign_table(emit(policy), desk.key("alice"), ""));
  VerifyOptions options = desk.verify_options();
  const auto validity_at = [&](std::uint64_t now) {
    options.now = now;
    return desk.verify_json(options)["policy"]["validity"].get<std::string>();
  };
  CHECK(validity_at(1'699'999'999) == "not_yet_valid");
  CHECK(has(desk.verify(options).out, "NOT YET VALID"));
  CHECK(validity_at(1'700'000'000) == "valid");
  CHECK(validity_at(1'799'999'999) == "valid");
  CHECK(validity_at(1'800'000'000) == "expired");
  const Said said = desk.verify(options);
  CHECK(has(said.out, "EXPIRED"));
  CHECK(has(said.out, "DISABLED"));
  CHECK(has(said.out, "policy    (no name) version 42\n"));
  CHECK(said.code == kExitOk);
}

TEST_CASE("verify refuses in one line that names the fault") {
  const Desk desk;
  const auto refused = [&](const std::string& line) {
    const Said said = desk.verify();
    CHECK(said.code == kExitRefused);
    CHECK(said.out == "");
    CHECK(said.err == desk.table + ": " + line + "\n");
  };
  desk.trust("alice", "bob", 2);
  refused("threshold_not_met: too few pinned keys have signed the table (1 of 2)");
  const nlohmann::json json = desk.verify_json(desk.verify_options());
  CHECK(json["verified"] == false);
  CHECK(json["fault"] == "threshold_not_met");
  CHECK(json["policy"] == nullptr);
  CHECK(json["signatures"][0]["key_id"] == desk.id("alice"));

  desk.scratch.put("trust", desk.scratch.text("bob.pub"));
  refused("untrusted_key: no signature was made by a pinned key (signed by " + desk.id("alice") + ")");

  desk.trust("alice", "bob", 1);
  std::vector<std::uint8_t> file = desk.scratch.bytes("edge.x0xp");
  file[offsetof(blob::Header, policy_version)] ^= 1;
  desk.scratch.put("edge.x0xp", file);
  refused("bad_signature: a signature by a pinned key does not match the table (signed by " + desk.id("alice") + ")");

  std::vector<std::uint8_t> payload = sample_payload();
  payload[offsetof(blob::Header, flags)] = 0xff;
  desk.scratch.put("edge.x0xp", assemble(payload, {sign_payload(payload, desk.key("alice"), "")}));
  refused("bad_flags: the table sets a flag that does not exist");

  desk.scratch.put("edge.x0xp", assemble(sample_payload(), {}));
  refused("unsigned_table: the table carries no signature");
  desk.scratch.put("edge.x0xp", "");
  refused("bad_magic: this is not a decision table");
}

TEST_CASE("a comment that was changed under a good signature is refused and never detached") {
  const Desk desk;
  SignedTable parts = take_apart(desk.scratch.bytes("edge.x0xp"), "t");
  parts.signatures[0].trusted_comment = "approved by everyone";
  desk.scratch.put("edge.x0xp", assemble(parts.payload, parts.signatures));
  const Said said = desk.detach("base");
  CHECK(said.code == kExitRefused);
  CHECK(said.err ==
        desk.table + ": bad_comment: the trusted comment of key " + desk.id("alice") + " is not signed by that key\n");
  CHECK_FALSE(std::filesystem::exists(desk.scratch.path("base.payload")));
}

TEST_CASE("verify tells keys that are pinned, known and unknown apart") {
  const Desk desk;
  desk.keygen("carol");
  desk.sign_with("carol", "hello \x1b[2J");
  const std::string id = desk.id("carol");
  CHECK(has(desk.verify().out, id + "  unknown  unchecked comment: hello \\u{1b}[2J\n"));
  VerifyOptions options = desk.verify_options();
  options.public_keys = {desk.scratch.path("carol.pub")};
  CHECK(has(desk.verify(options).out, id + "  known    hello \\u{1b}[2J\n"));
  CHECK(has(desk.verify(options).out, "by 1 of 2 pinned keys"));

  // A known key's bad signature is a refusal, though a node would step over it.
  SignedTable parts = take_apart(desk.scratch.bytes("edge.x0xp"), "t");
  for (Signature& signature : parts.signatures)
    if (key_id(signature.number) == id) signature.signature[0] ^= 1;
  desk.scratch.put("edge.x0xp", assemble(parts.payload, parts.signatures));
  CHECK(desk.verify().code == kExitOk);
  CHECK(has(desk.verify(options).err, "bad_signature: the signature by key " + id));
}

TEST_CASE("a key that signed twice has one vote") {
  const Desk desk;
  const SecretKey alice = desk.key("alice");
  desk.scratch.put("edge.x0xp", assemble(sample_payload(), {sign_payload(sample_payload(), alice, "a"),
                                                            sign_payload(sample_payload(), alice, "b")}));
  desk.trust("alice", "bob", 2);
  CHECK(has(desk.verify().err, "(1 of 2)"));
}

TEST_CASE("a trust file that is wrong is a mistake of the command line") {
  const Desk desk;
  desk.scratch.put("trust", desk.scratch.text("alice.pub") + desk.scratch.text("alice.pub"));
  const Said said = desk.verify();
  CHECK(said.code == kExitUsage);
  CHECK(said.err == desk.scratch.path("trust") + ": trust_duplicate_key: the trust file names a key twice");
  desk.scratch.put("trust", std::string(kMaxTrustFileBytes + 1, '\n'));
  CHECK(has(desk.verify().err, "trust_too_large"));
  VerifyOptions options = desk.verify_options();
  options.trust = desk.scratch.path("none");
  CHECK(desk.verify(options).code == kExitUsage);
}

TEST_CASE("a foreign comment that no .minisig can hold is not detached") {
  const Desk desk;
  SignedTable parts = take_apart(desk.scratch.bytes("edge.x0xp"), "t");
  parts.signatures.push_back(Signature{{1}, {}, {}, "two\nlines"});
  desk.scratch.put("edge.x0xp", assemble(parts.payload, parts.signatures));
  CHECK(has(desk.verify().out, "unchecked comment: two\\u{a}lines\n"));
  CHECK(desk.detach("base").code == kExitRefused);
  CHECK_FALSE(std::filesystem::exists(desk.scratch.path("base.payload")));
}

TEST_CASE("a comment that is not UTF-8 is printed, not choked on") {
  const Desk desk;
  desk.sign_with("bob", "caf\xe9");
  CHECK(has(desk.verify().out, "caf\\x{e9}"));
  CHECK(desk.verify_json(desk.verify_options())["signatures"].size() == 2);
}

TEST_CASE("times are written as RFC 3339 in UTC") {
  CHECK(format_utc(0) == "1970-01-01T00:00:00Z");
  CHECK(format_utc(951'782'400) == "2000-02-29T00:00:00Z");
  CHECK(format_utc(253'402'300'799) == "9999-12-31T23:59:59Z");
  CHECK(format_utc(253'402'300'800) == "253402300800 seconds after 1970");
}

}  // namespace
}  // namespace x0x::policyc
