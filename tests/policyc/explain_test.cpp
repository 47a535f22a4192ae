#include "policyc/explain.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/reference.hpp"

using namespace x0x::policyc;
using x0x::test::entry;
using x0x::test::id;
using x0x::test::policy;

namespace {

LoadedPolicy load(const Policy& source) {
  Diagnostics diagnostics;
  LoadedPolicy loaded{source, {}, "p.toml"};
  loaded.compiled = compile_policy(source, diagnostics).value();
  return loaded;
}

LoadedPolicy sample() {
  Policy source = policy({entry(1, 2,
                                {{"journalctl", "-u", "x0xd", "-n", "<INT>"},
                                 {"curl", "http://h:1<URL_PATH>"},
                                 {"journalctl", "-u", "x0xd"},
                                 {"echo", ""}}),
                          entry(1, 3, {{"id"}})});
  source.entries[0].description = "ops";
  source.entries[0].max_duration_secs = 30;
  source.entries[0].commands[1].span.line = 12;
  return load(source);
}

OwnedRequest request(const std::vector<std::string>& argv, std::uint8_t agent = 1, std::uint8_t machine = 2) {
  OwnedRequest made;
  made.set_pair(id(agent), id(machine));
  made.argv = argv;
  return made;
}

std::string explain(const LoadedPolicy& loaded, const OwnedRequest& asked) {
  return explain_human(loaded, asked, asked.decide(loaded.compiled.table, 1'800'000'000));
}

std::string why(const std::vector<std::string>& argv) { return nearest_rule(sample(), request(argv)).value().why; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an allowed request names its rule, its entry and its caps") {
  const std::string text = explain(sample(), request({"curl", "http://h:1/health"}));
  CHECK(has(text, "exec.allow[0].commands[1] at p.toml:12"));
  CHECK(has(text, "curl http://h:1<URL_PATH>"));
  CHECK(has(text, "ops"));
  CHECK(has(text, "30 s"));
}

TEST_CASE("the nearest rule is the one that goes on longest, then the one of the nearest length") {
  CHECK(nearest_rule(sample(), request({"journalctl", "-u", "x0xd", "-n", "0"})).value().rule == 0);
  CHECK(nearest_rule(sample(), request({"journalctl", "-u", "x0xd", "-f"})).value().rule == 0);
  CHECK(nearest_rule(sample(), request({"journalctl", "-u", "sshd"})).value().rule == 2);
  CHECK(nearest_rule(sample(), request({"journalctl", "-u", "x0xd", "-n", "0"})).value().token == 4);
  CHECK_FALSE(nearest_rule(sample(), request({"ls"}, 9, 9)).has_value());
}

TEST_CASE("every way to miss a token has its own words") {
  const std::vector<std::string> tail{"journalctl", "-u", "x0xd", "-n"};
  const auto number = [&](const std::string& last) {
    std::vector<std::string> argv = tail;
    argv.push_back(last);
    return why(argv);
  };
  CHECK(has(number("0"), "starts with `0`"));
  CHECK(has(number(""), "empty"));
  CHECK(has(number("1e5"), "more than the digits"));
  CHECK(has(number("1000000"), "more than 6 digits"));
  CHECK(has(why(tail), "goes on with `<INT>`"));
  CHECK(has(why({"journalctl", "-u", "x0xd", "-n", "1", "x"}), "goes on with `x`"));
  CHECK(has(why({"curl", "http://h:1"}), "nothing follows"));
  CHECK(has(why({"curl", "http://h:10/x"}), "`0` stands where the path must start"));
  CHECK(has(why({"curl", "http://h:1/a?b"}), "holds `?`"));
  CHECK(has(why({"curl", "http://h:1/../b"}), "holds `..`"));
  CHECK(has(why({"curl", "http://h:1/" + std::string(257, 'p')}), "258 bytes long"));
  CHECK(has(why({"curl", "https://h:1/"}), "does not start with `http://h:1`"));
  CHECK(has(why({"echo", "x"}), "`x` is not"));
}

TEST_CASE("an unknown pair is told which half is known") {
  CHECK(has(explain(sample(), request({"id"}, 1, 9)), "for this agent on machine 0202"));
  CHECK(has(explain(sample(), request({"id"}, 9, 3)), "for this machine and agent 0101"));
  CHECK_FALSE(has(explain(sample(), request({"id"}, 8, 8)), "nearest"));
}

TEST_CASE("a forbidden character is shown, escaped, with its token") {
  const std::string text = explain(sample(), request({"curl", "a\nb"}));
  CHECK(has(text, "shell_metachar_in_argv"));
  CHECK(has(text, "argv[1]"));
  CHECK_FALSE(has(text, "a\nb"));
}

TEST_CASE("JSON carries what programs rely on") {
  const LoadedPolicy loaded = sample();
  const OwnedRequest allowed = request({"curl", "http://h:1/x"}), denied = request({"rm"});
  const auto yes = verdict_json(loaded, allowed.decide(loaded.compiled.table, 1));
  CHECK(yes["decision"] == "allow");
  CHECK(yes["reason"].is_null());
  CHECK(yes["rule"] == nlohmann::ordered_json({{"entry", 0}, {"command", 1}, {"line", 12}}));
  CHECK(yes["matched_acl"] == "ops");
  CHECK(yes["max_duration_secs"] == 30);
  const auto no = verdict_json(loaded, denied.decide(loaded.compiled.table, 1));
  CHECK(no["decision"] == "deny");
  CHECK(no["reason"] == "argv_not_allowed");
  CHECK(no["rule"].is_null());
  CHECK(no["matched_acl"].is_null());
  CHECK(no["max_duration_secs"].is_null());
}
