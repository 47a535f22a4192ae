// keygen and sign as their users meet them, and the stock minisign on the other side.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "policyc/commands.hpp"
#include "policyc/overwrite.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/password_pipe.hpp"

namespace x0x::policyc {
namespace {

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
  REQUIRE(desk.minisign({"-G", "-W", "-p", desk.scratch.path("carol.pub"), "-s", desk.scratch.path("carol.key")}) == 0);
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
  CHECK(desk.minisign({"-S", "-s", desk.scratch.path("dora.key"), "-m", desk.scratch.path("edge.payload"), "-x",
                       desk.scratch.path("dora.minisig")},
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

  // The same version with other content is a note; the same content, or a later version, is nothing to speak
  // of.
  const std::string path = desk.scratch.path("newer.x0xp");
  const auto contradicts = [&](const Policy& policy) {
    const test::OpenTable table = test::open_policy(policy);
    return check_overwrite(path, table.view);
  };
  CHECK_FALSE(contradicts(sample_policy(43)));
  CHECK_FALSE(contradicts(sample_policy(44)));
  CHECK_THROWS_AS(contradicts(sample_policy(42)), UserError);
  Policy other = sample_policy(43);
  other.name = "core";
  CHECK(contradicts(other));
}

TEST_CASE("signing what a node could not open is refused") {
  const Desk desk;
  std::vector<std::uint8_t> file = desk.scratch.bytes("edge.x0xp");
  file[offsetof(blob::Header, flags)] = 0xff;
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
  CHECK(has(desk.attach("good", "alice.pub").err, "was made by key " + desk.id("bob") + ", which is not among"));

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

// ---- the command line itself

TEST_CASE("the options reach the commands, and help teaches") {
  const Desk desk;
  CLI::App app;
  std::function<int()> run;
  std::ostringstream said;
  std::streambuf* const before = std::cout.rdbuf(said.rdbuf());
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
  CHECK(parse("keygen -p " + desk.scratch.path("x.pub") + " -s " + desk.scratch.path("x.key") + " --no-password"));
  CHECK(run() == kExitOk);
  CHECK(parse("sign " + desk.table + " --key " + desk.scratch.path("x.key") + " --comment hi"));
  CHECK(run() == kExitOk);
  CHECK(parse("verify " + desk.table + " --trust " + desk.scratch.path("trust") + " --format json"));
  CHECK(run() == kExitOk);
  CHECK(parse("sign --minisig m --public a --public b " + desk.table));  // the table is no third public key
  CHECK_THROWS_AS(parse("keygen -p a -s b --no-password --password-fd 3"), CLI::ParseError);
  CHECK_THROWS_AS(parse("keygen -p a"), CLI::ParseError);
  CHECK_THROWS_AS(parse("verify t"), CLI::ParseError);
  CHECK_THROWS_AS(parse("verify t --trust x --format yaml"), CLI::ParseError);
  std::cout.rdbuf(before);
  CHECK(has(said.str(), "\"verified\": true"));
}

}  // namespace
}  // namespace x0x::policyc
