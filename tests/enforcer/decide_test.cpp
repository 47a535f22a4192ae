#include "enforcer/decide.hpp"

#include <doctest/doctest.h>

#include <bit>

#include "policyc/emit.hpp"
#include "policyc/lower.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/reference.hpp"

using namespace x0x;
using namespace x0x::test;
using wire::DenialReason;

namespace {

OwnedRequest request(const std::vector<std::string>& argv, std::uint8_t agent = 1, std::uint8_t machine = 2) {
  OwnedRequest made;
  made.agent = id(agent);
  made.machine = id(machine);
  made.argv = argv;
  return made;
}

// Denied because no command matched.
bool unmatched(const OpenTable& table, const std::vector<std::string>& argv) {
  const Verdict verdict = decide(table.view, request(argv));
  return verdict.decision == Decision::deny && verdict.reason == DenialReason::argv_not_allowed &&
         verdict.rule == blob::kNone;
}

bool allowed(const OpenTable& table, const std::vector<std::string>& argv) {
  return decide(table.view, request(argv)).decision == Decision::allow;
}

OpenTable table_of(const std::vector<std::vector<std::string>>& argvs) {
  OpenTable table = open_policy(policy({entry(1, 2, argvs)}));
  REQUIRE(table.fault == Fault::none);
  return table;
}

}  // namespace

TEST_CASE("ALLOW and DENY differ in every bit, and nothing is the default but DENY") {
  const auto difference = static_cast<std::uint32_t>(Decision::allow) ^ static_cast<std::uint32_t>(Decision::deny);
  CHECK(std::popcount(difference) == 32);
  CHECK_FALSE(is_allow(Decision::deny));
  CHECK_FALSE(is_allow(Decision{}));
  CHECK(Verdict{}.decision == Decision::deny);
}

TEST_CASE("attack 1: argc 0, empty argv[0], empty token") {
  const OpenTable table = table_of({{"echo"}, {"echo", ""}});
  CHECK(unmatched(table, {}));
  CHECK(unmatched(table, {""}));
  CHECK(unmatched(table, {"", ""}));
  CHECK(allowed(table, {"echo", ""}));
  CHECK(unmatched(table, {"echo", "", ""}));
}

TEST_CASE("attack 2: one token more, one fewer, two joined by a space") {
  const OpenTable table = table_of({{"systemctl", "restart", "nginx"}});
  CHECK(allowed(table, {"systemctl", "restart", "nginx"}));
  CHECK(unmatched(table, {"systemctl", "restart"}));
  CHECK(unmatched(table, {"systemctl", "restart", "nginx", "sshd"}));
  CHECK(unmatched(table, {"systemctl", "restart nginx"}));
  CHECK(unmatched(table, {"systemctl restart", "nginx"}));
  CHECK(unmatched(table, {"systemctl", "restart", "nginx "}));
}

TEST_CASE("attack 3: a leading dash where a template sits") {
  const OpenTable table = table_of({{"kill", "<INT>"}, {"get", "<URL_PATH>"}});
  for (const char* token : {"-1", "--1", "-", "--", "-9", "--help"}) CHECK(unmatched(table, {"kill", token}));
  for (const char* token : {"-/a", "--/", "-o/etc"}) CHECK(unmatched(table, {"get", token}));
}

TEST_CASE("attack 4: argv[0] spelt another way") {
  const OpenTable table = table_of({{"/bin/x"}, {"x"}});
  for (const char* name : {"./x", "//bin/x", "/bin/x ", " x", "x ", "/bin//x", "/bin/./x", "bin/x", "X", "/bin/x/"})
    CHECK_MESSAGE(unmatched(table, {name}), name);
}

TEST_CASE("attack 5: what is not an <INT>") {
  const OpenTable table = table_of({{"n", "<INT>"}});
  for (const char* good : {"1", "9", "10", "999999"}) CHECK_MESSAGE(allowed(table, {"n", good}), good);
  for (const char* bad :
       {"0", "00", "01", "+1", "-1", "1000000", "1e5", "1.0", "１", "٣", "1 ", " 1", "0x1", "", "1_0"})
    CHECK_MESSAGE(unmatched(table, {"n", bad}), bad);
  for (const std::string& bad : {std::string("1\n"), std::string("1\0", 2), std::string("5`a")})
    CHECK(decide(table.view, request({"n", bad})).reason == DenialReason::shell_metachar_in_argv);
}

TEST_CASE("attack 6: what is not a <URL_PATH>, and where a prefix ends") {
  const OpenTable table = table_of({{"get", "<URL_PATH>"}, {"curl", "http://h:1<URL_PATH>"}});
  for (const std::string& good : {std::string("/"), std::string("/health"), std::string("//evil"), std::string("/./"),
                                  std::string("/a.b"), "/" + std::string(256, 'p')})
    CHECK_MESSAGE(allowed(table, {"get", good}), good);
  for (const std::string& bad : {std::string("/.."), std::string("/a..b"), std::string("/%2e"), std::string("/?"),
                                 std::string("/a b"), std::string("/a\r"), std::string("/\xc3\xa9"), std::string("a/"),
                                 std::string(""), "/" + std::string(257, 'p'), "/" + std::string(258, 'p')})
    CHECK_MESSAGE(unmatched(table, {"get", bad}), bad);
  CHECK(allowed(table, {"curl", "http://h:1/x"}));
  CHECK(allowed(table, {"curl", "http://h:1/" + std::string(256, 'p')}));
  for (const std::string& bad :
       {std::string("http://h:10/x"), std::string("http://h:1.evil/"), std::string("http://h:1"),
        std::string("http://h:1x/"), std::string("http://h:1@evil/"), std::string("/http://h:1/x"),
        std::string("http://h:1/../x"), "http://h:1/" + std::string(257, 'p')})
    CHECK_MESSAGE(unmatched(table, {"curl", bad}), bad);
}

TEST_CASE("attack 7: look-alike and invisible characters are other bytes") {
  const OpenTable table = table_of({{"echo", "admin"}, {"echo", "adm\u200bin"}});
  CHECK(allowed(table, {"echo", "adm\u200bin"}));
  for (const char* token : {"аdmin", "admin\u200b", "\u202eadmin", "adm\u00adin", "ａdmin"})
    CHECK(unmatched(table, {"echo", token}));
}

TEST_CASE("attack 17: a decision that is neither constant is a denial") {
  const auto allow = static_cast<std::uint32_t>(Decision::allow);
  CHECK(is_allow(Decision::allow));
  for (int bit = 0; bit < 32; ++bit) CHECK_FALSE(is_allow(static_cast<Decision>(allow ^ (1u << bit))));
}

TEST_CASE("the first reason that applies wins") {
  policyc::Policy source = policy({entry(1, 2, {{"cat"}})});
  source.exec.max_stdin_bytes = 10;
  source.exec.max_duration_secs = 5;
  source.exec.warn_duration_secs = 5;
  source.not_before = 1000;
  source.expires = 2000;
  const OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);

  OwnedRequest wrong = request({}, 9, 9);  // everything is wrong with it; one fault after another is taken away
  wrong.cwd_present = true;
  wrong.stdin_bytes = 11;
  wrong.timeout_ms = 5001;
  const auto reason = [&](std::uint64_t now) { return decide(table.view, wrong, now).reason; };
  CHECK(reason(999) == DenialReason::exec_disabled);
  CHECK(reason(2000) == DenialReason::exec_disabled);
  CHECK(reason(1000) == DenialReason::argv_not_allowed);
  wrong.argv = {"x;y"};
  CHECK(reason(1999) == DenialReason::cwd_not_allowed);
  wrong.cwd_present = false;
  CHECK(reason(1999) == DenialReason::shell_metachar_in_argv);
  wrong.argv = {"x"};
  CHECK(reason(1999) == DenialReason::agent_machine_not_in_acl);
  wrong.agent = id(1);
  CHECK(reason(1999) == DenialReason::agent_machine_not_in_acl);
  wrong.machine = id(2);
  CHECK(reason(1999) == DenialReason::argv_not_allowed);
  wrong.argv = {"cat"};
  CHECK(reason(1999) == DenialReason::stdin_too_large);
  wrong.stdin_bytes = 10;
  CHECK(reason(1999) == DenialReason::timeout_too_large);
  wrong.timeout_ms = 5000;
  CHECK(decide(table.view, wrong, 1999).decision == Decision::allow);
  wrong.timeout_ms = 0;
  CHECK(decide(table.view, wrong, 1999).decision == Decision::allow);
}

TEST_CASE("a disabled policy denies everything") {
  policyc::Policy source = policy({entry(1, 2, {{"ls"}})});
  source.exec.enabled = false;
  CHECK(decide(open_policy(source).view, request({"ls"})).reason == DenialReason::exec_disabled);
}

TEST_CASE("timeouts are rounded up to whole seconds without wrapping") {
  policyc::Policy source = policy({entry(1, 2, {{"ls"}})});
  source.exec.max_duration_secs = 2;
  source.exec.warn_duration_secs = 1;
  const OpenTable table = open_policy(source);
  OwnedRequest asked = request({"ls"});
  for (const auto& [ms, yes] : std::vector<std::pair<std::uint32_t, bool>>{
           {1, true}, {1000, true}, {1001, true}, {2000, true}, {2001, false}, {0xffffffff, false}}) {
    asked.timeout_ms = ms;
    CHECK_MESSAGE((decide(table.view, asked).decision == Decision::allow) == yes, asked.timeout_ms);
  }
}

TEST_CASE("stdin = false refuses any stdin, and a command's own cap counts") {
  policyc::Policy source = policy({entry(1, 2, {{"quiet"}, {"small"}})});
  source.entries[0].commands[0].stdin_allowed = false;
  source.entries[0].commands[1].max_stdin_bytes = 3;
  const OpenTable table = open_policy(source);
  OwnedRequest asked = request({"quiet"});
  CHECK(decide(table.view, asked).decision == Decision::allow);
  asked.stdin_bytes = 1;
  CHECK(decide(table.view, asked).reason == DenialReason::stdin_too_large);
  asked.argv = {"small"};
  asked.stdin_bytes = 3;
  CHECK(decide(table.view, asked).decision == Decision::allow);
  asked.stdin_bytes = 4;
  CHECK(decide(table.view, asked).reason == DenialReason::stdin_too_large);
}

TEST_CASE("the first match in file order wins, across entries of one pair") {
  const OpenTable table = open_policy(policy({entry(1, 2, {{"k", "<INT>"}, {"k", "7"}}), entry(3, 3, {{"k", "7"}}),
                                              entry(1, 2, {{"k", "8"}, {"k", "x"}, {"k", "x"}})}));
  REQUIRE(table.fault == Fault::none);
  CHECK(decide(table.view, request({"k", "7"})).rule == 0);
  CHECK(decide(table.view, request({"k", "8"})).rule == 0);
  CHECK(decide(table.view, request({"k", "x"})).rule == 4);
  CHECK(decide(table.view, request({"k", "7"}, 3, 3)).rule == 2);
}

TEST_CASE("a NUL inside a token is a forbidden byte, also where the tokens would then match") {
  const OpenTable table = table_of({{"echo", "a", "b"}, {"echo", "a"}});
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"echo", std::string("a\0b", 3)},
                                               {std::string("echo\0a", 6), "b"},
                                               {std::string("echo\0a\0b", 8)},
                                               {"echo", std::string("a\0", 2)},
                                               {"echo", std::string("\0", 1)}})
    CHECK(decide(table.view, request(argv)).reason == DenialReason::shell_metachar_in_argv);
}

TEST_CASE("an argv longer than any rule is denied, for its forbidden byte if it has one") {
  const OpenTable table = table_of({{"echo"}});
  std::vector<std::string> argv(blob::kMaxArgc + 2, "echo");
  CHECK(unmatched(table, argv));
  argv.back() = ";";
  CHECK(decide(table.view, request(argv)).reason == DenialReason::shell_metachar_in_argv);
}

TEST_CASE("every shape of a pair is tried, and each template kind beside the others") {
  const OpenTable table = table_of({{"k", "<INT>", "<URL_PATH>", "end"},
                                    {"k", "1", "<URL_PATH>", "end"},
                                    {"k", "<INT>", "/x", "end"},
                                    {"k", "<INT>", "/x<URL_PATH>", "other"},
                                    {"k", "1", "/x", "end"},
                                    {"k", "0", "/x", "end"}});
  CHECK(decide(table.view, request({"k", "1", "/x", "end"})).rule == 0);
  CHECK(decide(table.view, request({"k", "0", "/x", "end"})).rule == 5);
  CHECK(decide(table.view, request({"k", "9", "/x/y", "other"})).rule == 3);
  CHECK(unmatched(table, {"k", "9", "/y/y", "other"}));
  CHECK(unmatched(table, {"k", "9", "/x", "other"}));
}

TEST_CASE("agreement with the reference model on random policies and requests") {
  Random random(20261118);
  std::size_t pairs = 0, allowed_count = 0;
  std::size_t reasons[12] = {};
  while (pairs < 120'000) {
    const policyc::Policy source = random_policy(random);
    if (policyc::lower(source).one_too_many) continue;
    const OpenTable table = open_policy(source);
    REQUIRE_MESSAGE(table.fault == Fault::none, fault_name(table.fault));
    for (int i = 0; i < 40; ++i, ++pairs) {
      const OwnedRequest asked = random_request(random, source);
      const Verdict verdict = decide(table.view, asked);
      const ReferenceVerdict expected = reference_decide(source, asked);
      const bool yes = verdict.decision == Decision::allow;
      REQUIRE(yes == expected.allowed);
      REQUIRE(verdict.rule == expected.rule);
      if (!yes) REQUIRE(verdict.reason == expected.reason);
      allowed_count += yes ? 1 : 0;
      if (!yes) ++reasons[static_cast<std::size_t>(verdict.reason)];
    }
  }
  // The generator reaches what it is for: every answer the decider has, and often.
  CHECK(allowed_count > 20'000);
  for (const DenialReason reason :
       {DenialReason::exec_disabled, DenialReason::agent_machine_not_in_acl, DenialReason::argv_not_allowed,
        DenialReason::stdin_too_large, DenialReason::timeout_too_large, DenialReason::cwd_not_allowed,
        DenialReason::shell_metachar_in_argv})
    CHECK_MESSAGE(reasons[static_cast<std::size_t>(reason)] > 500, static_cast<int>(reason));
}
