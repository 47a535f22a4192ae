// keygen, sign and verify as their users meet them, and the stock minisign on the other side.
#include <doctest/doctest.h>
#include <sodium.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "policyc/cmd_keygen.hpp"
#include "policyc/cmd_sign.hpp"
#include "policyc/cmd_verify.hpp"
#include "policyc/overwrite.hpp"
#include "policyc/signatures.hpp"
#include "policyc/timestamp.hpp"
#include "policyc/user_error.hpp"
#include "tests/support/password_pipe.hpp"
#include "tests/support/sample_payload.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What a command said, and how it ended.
struct Said {
  std::string out, err;
  int code = -1;
};

template <class Run>
Said listen(Run run) {
  std::ostringstream out, err;
  try {
    const int code = run(out, err);
    return {out.str(), err.str(), code};
  } catch (const UserError& error) {
    return {out.str(), error.what(), error.exit_code};
  }
}

// A place with a table in it and two authors.
struct Desk {
  Scratch scratch;
  std::string table = scratch.path("edge.x0xp");

  Desk() {
    keygen("alice");
    keygen("bob");
    scratch.put("edge.x0xp", sign_table(sample_payload(), key("alice"), ""));
    trust("alice", "bob", 1);
  }

  Said keygen(const std::string& name, bool force = false) const {
    KeygenOptions options{.public_path = scratch.path(name + ".pub"),
                          .secret_path = scratch.path(name + ".key"),
                          .comment = "",
                          .no_password = true,
                          .password = {},
                          .cost = {},
                          .force = force};
    return listen([&](std::ostream& out, std::ostream&) { return run_keygen(options, out); });
  }
  SecretKey key(const std::string& name) const {
    return load_secret_key(scratch.path(name + ".key"), PasswordSource{});
  }
  std::string id(const std::string& name) const { return key_id(key(name).number); }
  void trust(const std::string& first, const std::string& second, int threshold) const {
    scratch.put("trust", scratch.text(first + ".pub") + scratch.text(second + ".pub") + "threshold " +
                             std::to_string(threshold) + "\n");
  }
  SignOptions sign_options() const {
    SignOptions options;
    options.table = table;
    return options;
  }
  Said sign(const SignOptions& options) const {
    return listen([&](std::ostream& out, std::ostream&) { return run_sign(options, out); });
  }
  Said sign_with(const std::string& name, const std::string& comment = "") const {
    SignOptions options = sign_options();
    options.key = scratch.path(name + ".key");
    options.comment = comment;
    return sign(options);
  }
  Said attach(const std::string& minisig, const std::string& public_key) const {
    SignOptions options = sign_options();
    options.minisig = scratch.path(minisig);
    options.public_keys = {scratch.path(public_key)};
    return sign(options);
  }
  VerifyOptions verify_options() const {
    VerifyOptions options;
    options.table = table;
    options.trust = scratch.path("trust");
    return options;
  }
  Said verify(const VerifyOptions& options) const {
    return listen([&](std::ostream& out, std::ostream& err) { return run_verify(options, out, err); });
  }
  Said verify() const { return verify(verify_options()); }
  Said detach(const std::string& base) const {
    VerifyOptions options = verify_options();
    options.detach = scratch.path(base);
    return verify(options);
  }
  nlohmann::json verify_json(const VerifyOptions& base) const {
    VerifyOptions options = base;
    options.json = true;
    return nlohmann::json::parse(verify(options).out);
  }
  int minisign(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), "minisign");
    return run_program(arguments, input);
  }
  // `minisign -S` over the table's payload.
  void stock_signs(const std::string& name, const std::string& minisig,
                   std::vector<std::string> more = {}) const {
    scratch.put("edge.payload", sample_payload());
    std::vector<std::string> arguments{"-S",
                                       "-s",
                                       scratch.path(name + ".key"),
                                       "-m",
                                       scratch.path("edge.payload"),
                                       "-x",
                                       scratch.path(minisig)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(minisign(arguments) == 0);
  }
  bool stock_verifies(const std::string& payload, const std::string& minisig, const std::string& name) const {
    return minisign({"-V", "-p", scratch.path(name + ".pub"), "-m", scratch.path(payload), "-x",
                     scratch.path(minisig)}) == 0;
  }
};

// ---- keygen

TEST_CASE("keygen writes two files, the secret one for its owner only") {
  const Desk desk;
  struct stat status {};
  REQUIRE(stat(desk.scratch.path("alice.key").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(has(desk.scratch.text("alice.pub"), "minisign public key " + desk.id("alice")));
  CHECK(desk.id("alice") != desk.id("bob"));
}

TEST_CASE("keygen overwrites nothing unless it is told to") {
  const Desk desk;
  const std::string before = desk.scratch.text("alice.key");
  const Said refused = desk.keygen("alice");
  CHECK(refused.code == kExitRefused);
  CHECK(has(refused.err, "alice.pub` exists already"));
  std::filesystem::remove(desk.scratch.path("alice.pub"));
  CHECK(has(desk.keygen("alice").err, "alice.key` exists already"));
  CHECK_FALSE(std::filesystem::exists(desk.scratch.path("alice.pub")));
  CHECK(desk.scratch.text("alice.key") == before);
  CHECK(desk.keygen("alice", true).code == kExitOk);
  CHECK(desk.scratch.text("alice.key") != before);
}

TEST_CASE("keygen leaves no half of a pair behind") {
  const Scratch scratch;
  KeygenOptions options;
  options.no_password = true;
  options.public_path = scratch.path("k.pub");
  options.secret_path = scratch.path("missing/k.key");
  const auto run = [&](std::ostream& out, std::ostream&) { return run_keygen(options, out); };
  CHECK(listen(run).code == kExitUsage);
  CHECK(scratch.names().empty());
  options.secret_path = scratch.path("./k.pub");
  CHECK(has(listen(run).err, "two different files"));
}

TEST_CASE("keygen puts a comment into both files, if it is one line") {
  const Scratch scratch;
  KeygenOptions options;
  options.no_password = true;
  options.public_path = scratch.path("k.pub");
  options.secret_path = scratch.path("k.key");
  options.comment = "two\nlines";
  const auto run = [&](std::ostream& out, std::ostream&) { return run_keygen(options, out); };
  CHECK(listen(run).code == kExitRefused);
  CHECK(scratch.names().empty());
  options.comment = "the edge team";
  CHECK(listen(run).code == kExitOk);
  CHECK(scratch.text("k.pub").starts_with("untrusted comment: the edge team\n"));
  CHECK(scratch.text("k.key").starts_with("untrusted comment: the edge team\n"));
}

// ---- the stock minisign, both ways

TEST_CASE("the stock minisign signs with our key, and our reader takes it") {
  const Desk desk;
  desk.stock_signs("bob", "bob.minisig");
  CHECK(desk.attach("bob.minisig", "bob.pub").code == kExitOk);
  desk.trust("alice", "bob", 2);
  const Said said = desk.verify();
  CHECK(said.code == kExitOk);
  CHECK(has(said.out, "by 2 of 2 pinned keys, threshold 2"));
  CHECK(has(said.out, "file:edge.payload\\u{9}hashed"));  // minisign's tabs, made visible
}

TEST_CASE("the stock minisign verifies what we sign and detach") {
  const Desk desk;
  REQUIRE(desk.detach("one").code == kExitOk);
  CHECK(desk.stock_verifies("one.payload", "one.payload.minisig", "alice"));
  CHECK_FALSE(desk.stock_verifies("one.payload", "one.payload.minisig", "bob"));

  REQUIRE(desk.sign_with("bob", "reviewed").code == kExitOk);
  const Said said = desk.detach("two");
  REQUIRE(said.code == kExitOk);
  for (const std::string name : {"alice", "bob"}) {
    const std::string minisig = "two.payload." + desk.id(name) + ".minisig";
    CHECK(has(said.out, minisig));
    CHECK(desk.stock_verifies("two.payload", minisig, name));
  }
  CHECK_FALSE(std::filesystem::exists(desk.scratch.path("two.payload.minisig")));
  CHECK(desk.scratch.bytes("two.payload") == sample_payload());
}

TEST_CASE("a key pair of the stock minisign signs and verifies here") {
  const Desk desk;
  REQUIRE(desk.minisign(
              {"-G", "-W", "-p", desk.scratch.path("carol.pub"), "-s", desk.scratch.path("carol.key")}) == 0);
  CHECK(desk.sign_with("carol").code == kExitOk);
  desk.trust("carol", "bob", 1);
  CHECK(desk.verify().code == kExitOk);
}

// scrypt at minisign's own cost takes seconds and a gibibyte, three times here and nowhere else.
TEST_CASE("a key with a password goes both ways") {
  const Desk desk;
  {
    const PasswordPipe pipe("open sesame\n");
    KeygenOptions options;
    options.public_path = desk.scratch.path("dora.pub");
    options.secret_path = desk.scratch.path("dora.key");
    options.password = pipe.source();
    REQUIRE(run_keygen(options, *std::make_unique<std::ostringstream>()) == kExitOk);
  }
  CHECK(has(desk.scratch.text("dora.key"), "\nRWRTY0Iy"));  // Ed, Sc, B2
  desk.scratch.put("edge.payload", sample_payload());
  CHECK(desk.minisign({"-S", "-s", desk.scratch.path("dora.key"), "-m", desk.scratch.path("edge.payload"),
                       "-x", desk.scratch.path("dora.minisig")},
                      "open sesame\n") == 0);
  CHECK(desk.attach("dora.minisig", "dora.pub").code == kExitOk);
  const PasswordPipe pipe("open sesame");
  SignOptions options = desk.sign_options();
  options.key = desk.scratch.path("dora.key");
  options.password = pipe.source();
  CHECK(has(desk.sign(options).out, "signature replaced by key"));
}

// ---- sign

TEST_CASE("signing adds, and signing again replaces") {
  const Desk desk;
  const Said added = desk.sign_with("bob");
  CHECK(added.code == kExitOk);
  CHECK(has(added.out, "signed by key " + desk.id("bob") + ", 2 in all"));
  CHECK(has(added.out, "policy  edge version 42"));
  const std::vector<std::uint8_t> once = desk.scratch.bytes("edge.x0xp");
  CHECK(has(desk.sign_with("bob").out, "signature replaced by key " + desk.id("bob") + ", 2 in all"));
  CHECK(desk.scratch.bytes("edge.x0xp") == once);
}

TEST_CASE("a signed table stays as readable as it was, and can go elsewhere") {
  const Desk desk;
  chmod(desk.table.c_str(), 0600);
  CHECK(desk.sign_with("bob").code == kExitOk);
  struct stat status {};
  REQUIRE(stat(desk.table.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  const std::vector<std::uint8_t> before = desk.scratch.bytes("edge.x0xp");
  SignOptions options = desk.sign_options();
  options.key = desk.scratch.path("bob.key");
  options.comment = "elsewhere";
  options.output = desk.scratch.path("out.x0xp");
  CHECK(desk.sign(options).code == kExitOk);
  CHECK(desk.scratch.bytes("edge.x0xp") == before);
  CHECK(has(desk.scratch.text("out.x0xp"), "elsewhere"));
}

TEST_CASE("a newer table and a file that is no table are not overwritten") {
  const Desk desk;
  desk.scratch.put("newer.x0xp", sign_table(sample_payload(43), desk.key("alice"), ""));
  desk.scratch.put("exec-acl.toml", "[policy]\n");
  SignOptions options = desk.sign_options();
  options.key = desk.scratch.path("bob.key");
  options.output = desk.scratch.path("newer.x0xp");
  CHECK(has(desk.sign(options).err, "holds version 43, and this would put version 42 in its place"));
  options.output = desk.scratch.path("exec-acl.toml");
  const Said refused = desk.sign(options);
  CHECK(has(refused.err, "exists and is not a decision table"));
  CHECK(refused.code == kExitRefused);
  CHECK(desk.scratch.text("exec-acl.toml") == "[policy]\n");
  options.force = true;
  CHECK(desk.sign(options).code == kExitOk);

  const std::string newer = desk.scratch.path("newer.x0xp");
  const auto table = [](std::uint64_t version) { return test::open_policy(sample_policy(version)); };
  CHECK_FALSE(check_overwrite(newer, table(43).view));
  CHECK_FALSE(check_overwrite(newer, table(44).view));
  CHECK_THROWS_AS(check_overwrite(newer, table(42).view), UserError);
  CHECK_FALSE(check_overwrite(desk.scratch.path("nothing"), table(1).view));
  Policy changed = sample_policy(43);
  changed.name = "other";
  CHECK(check_overwrite(newer, test::open_policy(changed).view));
}

TEST_CASE("signing what a node could not open is refused") {
  const Desk desk;
  std::vector<std::uint8_t> file = desk.scratch.bytes("edge.x0xp");
  file[blob::kHeaderFlags] = 0xff;
  desk.scratch.put("edge.x0xp", file);
  CHECK(desk.sign_with("bob").err == desk.table + ": bad_flags: the table sets a flag that does not exist");
  desk.scratch.put("edge.x0xp", "not a table at all");
  const Said refused = desk.sign_with("bob");
  CHECK(refused.err == desk.table + ": bad_magic: this is not a decision table");
  CHECK(refused.code == kExitRefused);
}

TEST_CASE("sign: the command line is checked") {
  const Desk desk;
  SignOptions options = desk.sign_options();
  CHECK(has(desk.sign(options).err, "give either `--key SECRET` to sign, or `--minisig FILE`"));
  options.minisig = desk.scratch.path("bob.minisig");
  CHECK(has(desk.sign(options).err, "`--minisig` needs `--public FILE`: "));
  options.public_keys = {desk.scratch.path("bob.pub")};
  options.comment = "late";
  CHECK(has(desk.sign(options).err, "`--comment` cannot change"));
  options.key = desk.scratch.path("bob.key");
  CHECK(has(desk.sign(options).err, "give either"));
  options.minisig = options.comment = "";
  CHECK(has(desk.sign(options).err, "`--public` goes with `--minisig`"));
  CHECK(desk.sign(options).code == kExitUsage);
}

TEST_CASE("sign: a missing table, a directory, a bad key and a long comment are refused") {
  const Desk desk;
  SignOptions options = desk.sign_options();
  options.key = desk.scratch.path("bob.key");
  options.table = desk.scratch.path("none");
  CHECK(desk.sign(options).code == kExitUsage);
  options.table = desk.scratch.path("");
  CHECK(has(desk.sign(options).err, "Is a directory"));
  options = desk.sign_options();
  options.key = desk.scratch.path("bob.pub");
  CHECK(has(desk.sign(options).err, "is a public key"));
  CHECK(has(desk.sign_with("bob", std::string(256, 'c')).err, "at most 255 fit"));
  CHECK(take_apart(desk.scratch.bytes("edge.x0xp"), "t").signatures.size() == 1);
}

TEST_CASE("a signature file is attached only if everything about it is right") {
  const Desk desk;
  const std::vector<std::uint8_t> before = desk.scratch.bytes("edge.x0xp");
  desk.stock_signs("bob", "good", {"-t", "reviewed by bob"});
  CHECK(has(desk.attach("good", "alice.pub").err,
            "was made by key " + desk.id("bob") + ", which is not among"));

  std::string text = desk.scratch.text("good");
  desk.scratch.put("comment", text.replace(text.find("by bob"), 6, "by eve"));
  CHECK(has(desk.attach("comment", "bob.pub").err, "has a trusted comment that its key has not signed"));

  desk.stock_signs("bob", "legacy", {"-l"});
  CHECK(has(desk.attach("legacy", "bob.pub").err, "legacy minisign signature"));

  desk.stock_signs("bob", "long", {"-t", std::string(256, 'c')});
  CHECK(has(desk.attach("long", "bob.pub").err, "a trusted comment of 256 bytes"));

  desk.scratch.put("other", sample_payload(43));
  REQUIRE(desk.minisign({"-S", "-s", desk.scratch.path("bob.key"), "-m", desk.scratch.path("other")}) == 0);
  const Said other = desk.attach("other.minisig", "bob.pub");
  CHECK(has(other.err, "does not sign the payload"));
  CHECK(other.code == kExitRefused);

  CHECK(desk.attach("nothing", "bob.pub").code == kExitUsage);
  CHECK(desk.attach("bob.pub", "bob.pub").code == kExitRefused);
  CHECK(has(desk.attach("good", "bob.key").err, "is not a minisign public key"));
  CHECK(desk.scratch.bytes("edge.x0xp") == before);
  CHECK(desk.attach("good", "trust").code == kExitOk);
}

// ---- verify

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
  file[blob::kHeaderPolicyVersion] ^= 1;
  desk.scratch.put("edge.x0xp", file);
  refused("bad_signature: a signature by a pinned key does not match the table (signed by " +
          desk.id("alice") + ")");

  std::vector<std::uint8_t> payload = sample_payload();
  payload[blob::kHeaderFlags] = 0xff;
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
  CHECK(said.err == desk.table + ": bad_comment: the trusted comment of key " + desk.id("alice") +
                        " is not signed by that key\n");
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

// ---- the command line itself

TEST_CASE("the options reach the commands, and help teaches") {
  const Desk desk;
  CLI::App app;
  std::function<int()> run;
  add_keygen_command(app, run);
  add_sign_command(app, run);
  add_verify_command(app, run);
  for (const char* name : {"keygen", "sign", "verify"}) {
    const std::string help = app.get_subcommand(name)->help();
    CHECK(has(help, std::string("  x0x-policyc ") + name));
    CHECK(has(help, "Exit status: 0"));
  }
  const auto parse = [&](const std::string& line) {
    run = nullptr;
    app.parse(line);
    return run != nullptr;
  };
  CHECK(parse("keygen -p " + desk.scratch.path("x.pub") + " -s " + desk.scratch.path("x.key") +
              " --no-password"));
  CHECK(run() == kExitOk);
  CHECK(parse("sign " + desk.table + " --key " + desk.scratch.path("x.key") + " --comment hi"));
  CHECK(run() == kExitOk);
  CHECK(parse("verify " + desk.table + " --trust " + desk.scratch.path("trust") + " --format json"));
  CHECK(run() == kExitOk);
  CHECK_THROWS_AS(parse("keygen -p a -s b --no-password --password-fd 3"), CLI::ParseError);
  CHECK_THROWS_AS(parse("keygen -p a"), CLI::ParseError);
  CHECK_THROWS_AS(parse("verify t"), CLI::ParseError);
  CHECK_THROWS_AS(parse("verify t --trust x --format yaml"), CLI::ParseError);
}

TEST_CASE("times are written as RFC 3339 in UTC") {
  CHECK(format_utc(0) == "1970-01-01T00:00:00Z");
  CHECK(format_utc(951'782'400) == "2000-02-29T00:00:00Z");
  CHECK(format_utc(253'402'300'799) == "9999-12-31T23:59:59Z");
  CHECK(format_utc(253'402'300'800) == "253402300800 seconds after 1970");
}

}  // namespace
}  // namespace x0x::policyc
