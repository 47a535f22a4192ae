#include "enforcer/policy_file.hpp"

#include <doctest/doctest.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "policyc/emit.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using x0x::policyc::Scratch;
using x0x::test::TestKey;

namespace {

constexpr std::uint64_t kNow = 1'800'000'000;

std::string trust_file(const TestKey& key) {
  std::uint8_t raw[42] = {'E', 'd'};
  std::memcpy(raw + 2, key.number.data(), 8);
  std::memcpy(raw + 10, key.public_key.data(), 32);
  char text[100];
  return std::string("untrusted comment: test\n") +
         sodium_bin2base64(text, sizeof text, raw, sizeof raw, sodium_base64_VARIANT_ORIGINAL) + "\n";
}

policyc::Policy sample(std::uint64_t version = 5) {
  policyc::Policy policy = test::policy({test::entry(1, 2, {{"echo", "<INT>"}})});
  policy.version = version;
  return policy;
}

// A node with a policy, a trust file and a state directory that are all as they should be.
struct Installed {
  Scratch scratch;
  std::string policy_path = scratch.path("p.x0xp"), trust_path = scratch.path("trust.pub"),
              state = scratch.path("state");
  Node node{policy_path.c_str(), trust_path.c_str(), state.c_str(), "web-1", kNow};

  Installed() {
    mkdir(state.c_str(), 0700);
    scratch.put("trust.pub", trust_file(TestKey(1)));
    chmod(trust_path.c_str(), 0644);
    install(sample());
  }
  void install(const policyc::Policy& policy) { install(test::sign(policyc::emit(policy))); }
  void install(const test::ByteVector& file) {
    scratch.put("p.x0xp", file);
    chmod(policy_path.c_str(), 0644);
  }
  Fault load() { return load_policy(node).fault; }
  const char* blamed() { return load_policy(node).blamed; }
};

}  // namespace

TEST_CASE("a good policy is loaded, its version recorded, and it loads again") {
  Installed on;
  const Policy policy = load_policy(on.node);
  REQUIRE(policy.fault == Fault::none);
  CHECK(policy.table.header().policy_version == 5);
  const std::string recorded = on.scratch.text("state/highest");
  CHECK(recorded.starts_with("00000000000000000005 "));
  CHECK(recorded.size() == 20 + 1 + 64 + 1);
  CHECK(on.load() == Fault::none);
  CHECK(on.scratch.text("state/highest") == recorded);
}

TEST_CASE("files: missing, symlink, not a file, wrong mode, too large; and each names the file it is about") {
  Installed on;
  for (const std::string& path : {on.policy_path, on.trust_path}) {
    const std::string content = on.scratch.text(path == on.policy_path ? "p.x0xp" : "trust.pub");
    const auto put_back = [&] {
      unlink(path.c_str());
      rmdir(path.c_str());
      on.scratch.put(path == on.policy_path ? "p.x0xp" : "trust.pub", content);
      chmod(path.c_str(), 0644);
      REQUIRE(on.load() == Fault::none);
    };
    const auto blames = [&](Fault fault) { return on.load() == fault && on.blamed() == path; };
    unlink(path.c_str());
    CHECK(blames(Fault::missing));
    on.scratch.put("real", content);
    REQUIRE(symlink("real", path.c_str()) == 0);
    CHECK(blames(Fault::symlink));
    unlink(path.c_str());
    mkdir(path.c_str(), 0755);
    CHECK(blames(Fault::not_a_file));
    rmdir(path.c_str());
    mkfifo(path.c_str(), 0644);  // must not hang
    CHECK(blames(Fault::not_a_file));
    put_back();
    for (const mode_t mode : {0664u, 0646u, 0666u}) {
      chmod(path.c_str(), mode);
      CHECK(blames(Fault::wrong_mode));
    }
    put_back();
  }
  REQUIRE(truncate(on.policy_path.c_str(), static_cast<off_t>(blob::kMaxFileBytes) + 1) == 0);
  CHECK(on.load() == Fault::too_large);
  on.install(sample());
  REQUIRE(truncate(on.trust_path.c_str(), 1 << 20) == 0);
  CHECK(on.load() == Fault::trust_too_large);
}

TEST_CASE("files: wrong owner, unreadable") {
  Installed on;
  if (geteuid() == 0) {
    REQUIRE(chown(on.policy_path.c_str(), 12345, 0) == 0);
    CHECK(on.load() == Fault::wrong_owner);
  } else {
    chmod(on.policy_path.c_str(), 0200);
    CHECK(on.load() == Fault::unreadable);
    on.node.policy_path = "/etc/passwd";  // root's, as it may be
    CHECK(on.load() == Fault::bad_magic);
  }
}

TEST_CASE("signatures and structure are checked, in that order") {
  Installed on;
  const test::ByteVector payload = policyc::emit(sample());
  on.install(test::sign(payload, TestKey(2)));
  CHECK(on.load() == Fault::untrusted_key);
  on.install(test::assemble(payload, {}));
  CHECK(on.load() == Fault::unsigned_table);
  on.install(test::ByteVector{1, 2, 3});
  CHECK(on.load() == Fault::bad_magic);
  on.install(test::ByteVector{});
  CHECK(on.load() == Fault::bad_magic);
  test::ByteVector longer = payload;
  longer.push_back(0);
  on.install(test::sign(longer));
  CHECK(on.load() == Fault::trailing_bytes);
  on.scratch.put("trust.pub", "");
  CHECK(on.load() == Fault::trust_no_keys);
  CHECK(on.blamed() == on.trust_path);
  CHECK(load_policy(on.node).table.payload().empty());  // nothing of it can be used
  CHECK(on.scratch.names().size() == 3);
  CHECK(access(on.scratch.path("state/highest").c_str(), F_OK) != 0);  // nothing of that was recorded
}

TEST_CASE("window: not yet valid, expired, and a clock that was never set") {
  Installed on;
  policyc::Policy policy = sample();
  policy.not_before = kNow;
  policy.expires = kNow + 10;
  on.install(policy);
  const auto at = [&](std::uint64_t now) {
    on.node.now_secs = now;
    return on.load();
  };
  CHECK(at(kNow - 1) == Fault::not_yet_valid);
  CHECK(at(kNow + 10) == Fault::expired);
  CHECK(at(kNow + 9) == Fault::none);
  CHECK(at(kNow) == Fault::none);
  policy.not_before.reset();
  policy.version = 6;
  on.install(policy);
  CHECK(at(0) == Fault::bad_clock);
  CHECK(at(kEarliestClock - 1) == Fault::bad_clock);
  CHECK(at(kEarliestClock) == Fault::none);
  policy.expires.reset();
  policy.version = 7;
  on.install(policy);
  CHECK(at(0) == Fault::none);  // without a window the clock does not matter
}

TEST_CASE("audience: another node's policy is refused") {
  Installed on;
  policyc::Policy policy = sample();
  policy.audience = {"web-1", "web-2"};
  on.install(policy);
  CHECK(on.load() == Fault::none);
  for (const char* name : {"web-3", "", "web-1 ", "web"}) {
    on.node.name = name;
    CHECK(on.load() == Fault::wrong_audience);
  }
}

TEST_CASE("versions only go up") {
  Installed on;
  CHECK(on.load() == Fault::none);
  on.install(sample(4));
  CHECK(on.load() == Fault::lower_version);
  CHECK(load_policy(on.node).table.payload().empty());
  CHECK(on.blamed() == on.policy_path);
  policyc::Policy other = sample(5);
  other.exec.max_duration_secs = 17;
  on.install(other);
  CHECK(on.load() == Fault::same_version_other_content);
  other.version = 6;
  on.install(other);
  CHECK(on.load() == Fault::none);
  on.install(sample(5));
  CHECK(on.load() == Fault::lower_version);
}

TEST_CASE("--check compares versions and records nothing") {
  Installed on;
  on.node.record = false;
  CHECK(on.load() == Fault::none);
  CHECK(access(on.scratch.path("state/highest").c_str(), F_OK) != 0);
  on.node.state_dir = "/nonexistent/state";
  CHECK(on.load() == Fault::state_not_writable);
}

TEST_CASE("state: a directory that is not there, and a record that nobody of us wrote") {
  Installed on;
  on.node.state_dir = "/nonexistent/state";
  CHECK(on.load() == Fault::state_not_writable);
  CHECK(std::string(on.blamed()) == "/nonexistent/state");
  on.node.state_dir = on.state.c_str();
  const std::string digest(64, 'a');
  for (const std::string& text :
       {std::string(), std::string("5"), "00000000000000000005 " + digest, "05 " + digest + "\n", "-1 " + digest + "\n",
        "00000000000000000005 " + digest + "\n\n", "99999999999999999999999 " + digest + "\n", "5  " + digest + "\n",
        "0000000000000000000x " + digest + "\n", "00000000000000000005_" + digest + "\n",
        "00000000000000000005 " + std::string(64, 'g') + "\n", "00000000000000000005 " + digest + "x",
        std::string(500, '5')}) {
    on.scratch.put("state/highest", text);
    chmod(on.scratch.path("state/highest").c_str(), 0600);
    CHECK(on.load() == Fault::state_damaged);
  }
  on.scratch.put("state/highest", "00000000000000000005 " + digest + "\n");
  chmod(on.scratch.path("state/highest").c_str(), 0666);
  CHECK(on.load() == Fault::state_damaged);
}

TEST_CASE("a crash before the rename leaves the old version, and the rest of it does not matter") {
  Installed on;
  CHECK(on.load() == Fault::none);
  on.scratch.put("state/highest.new", "99");
  CHECK(on.load() == Fault::none);
  on.install(sample(6));
  CHECK(on.load() == Fault::none);
  CHECK(on.scratch.text("state/highest").starts_with("00000000000000000006 "));
}

TEST_CASE("the copy in memory does not change with the file") {
  Installed on;
  const Policy policy = load_policy(on.node);
  const Bytes payload = policy.table.payload();
  const std::string before(payload.begin(), payload.end());
  REQUIRE(!before.empty());
  REQUIRE(truncate(on.policy_path.c_str(), 0) == 0);
  CHECK(std::string(payload.begin(), payload.end()) == before);
}
