// decompile then compile gives back the same bytes
#include "policyc/read_table.hpp"

#include <doctest/doctest.h>

#include "policyc/emit.hpp"
#include "policyc/lower.hpp"
#include "tests/support/generate.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

policyc::Policy everything() {
  policyc::Policy source = policy({entry(1, 2, {{"systemctl", "restart", "<INT>"}, {"ls"}}), entry(1, 3, {{"id"}})});
  source.name = "fleet";
  source.version = 42;
  source.not_before = 10;
  source.expires = 4'000'000'000;
  source.audience = {"web-1", "web-2"};
  source.exec.default_cwd = "/srv";
  source.exec.audit_tasklist_id = "01HZX";
  source.entries[0].description = "ops \u202e laptop";
  source.entries[1].description = "";
  source.entries[1].max_duration_secs = 9;
  policyc::Command& c = source.entries[0].commands[0];
  c.exe = "/usr/bin/systemctl";
  c.sha256 = id(7);
  c.reason = "restarts";
  c.cwd = "/";
  c.stdin_allowed = false;
  c.network = false;
  c.audit_hash = true;
  c.max_duration_secs = 20;
  c.max_stdout_bytes = 1;
  c.max_stderr_bytes = 2;
  c.max_stdin_bytes = 3;
  c.env = {{"A", "1=2"}, {"TERM", ""}};
  c.limits = {1, 2, 3, 4, 5};
  c.writable = {"/tmp", "/var/tmp"};
  c.allow = {{{"systemctl", "restart", "7"}, {}}, {{"systemctl", "restart", ""}, {}}};
  c.deny = {{{}, {}}, {{"x"}, {}}};
  source.entries[1].commands[0].writable.emplace();
  return source;
}

ByteVector round_trip(const ByteVector& payload) {
  const OpenTable table = open_signed(payload);
  REQUIRE_MESSAGE(table.fault == Fault::none, fault_name(table.fault));
  return policyc::emit(policyc::read_table(table.view));
}

}  // namespace

TEST_CASE("a policy with everything in it survives compile, decompile, compile") {
  const ByteVector payload = policyc::emit(everything());
  CHECK(round_trip(payload) == payload);
}

TEST_CASE("what is read back is what was written") {
  const OpenTable table = open_policy(everything());
  REQUIRE(table.fault == Fault::none);
  const policyc::Policy back = policyc::read_table(table.view);
  CHECK(back.name == "fleet");
  CHECK(back.version == 42);
  CHECK(back.audience == std::vector<std::string>{"web-1", "web-2"});
  REQUIRE(back.entries.size() == 2);
  CHECK(back.entries[1].description == "");
  const policyc::Command& c = back.entries[0].commands[0];
  CHECK(c.argv == everything().entries[0].commands[0].argv);
  CHECK(c.exe == "/usr/bin/systemctl");
  CHECK(c.sha256 == id(7));
  CHECK(c.env[0].name == "A");
  CHECK(c.env[0].value == "1=2");
  CHECK(c.limits.processes == 5);
  CHECK(c.writable == std::vector<std::string>{"/tmp", "/var/tmp"});
  REQUIRE(c.allow.size() == 2);
  CHECK(c.allow[0].argv == std::vector<std::string>{"systemctl", "restart", ""});
  CHECK(c.deny[0].argv.empty());
  CHECK(back.entries[1].commands[0].writable == std::vector<std::string>{});
  CHECK_FALSE(back.entries[0].commands[1].writable.has_value());
}

TEST_CASE("random policies survive compile, decompile, compile") {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const policyc::Policy source = random_policy(random);
    if (policyc::lower(source).one_too_many) continue;
    const ByteVector payload = policyc::emit(source);
    REQUIRE(round_trip(payload) == payload);
  }
}
