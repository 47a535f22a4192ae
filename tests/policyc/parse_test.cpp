#include "policyc/parse.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "schema/blob_format.hpp"
#include "tests/policyc/front_end.hpp"

namespace x0x::policyc {
namespace {

std::string corpus_file(const std::string& name) {
  std::ifstream file(std::string(std::getenv("X0X_SOURCE_ROOT")) + "/corpus/policies/" + name, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("an empty file is a policy that is switched off, with x0x's defaults") {
  const Checked checked = check_text("");
  REQUIRE(checked.policy.has_value());
  const Exec& exec = checked.policy->exec;
  CHECK_FALSE(exec.enabled);
  CHECK(exec.max_stdout_bytes == 16'777'216);
  CHECK(exec.max_stdin_bytes == 1'048'576);
  CHECK(exec.max_duration_secs == 300);
  CHECK(exec.audit_log_path == "/var/log/x0x/exec.log");
  CHECK(checked.policy->entries.empty());
}

TEST_CASE("every key ends up in its field") {
  const Checked checked = check_text(corpus_file("ok_extensions.toml"));
  REQUIRE(checked.policy.has_value());
  const Policy& policy = *checked.policy;
  CHECK(policy.name == "fleet-web");
  CHECK(policy.version == 42);
  CHECK(policy.not_before == 1'794'960'000);
  CHECK(policy.expires == 2'110'579'200);
  CHECK(policy.audience == std::vector<std::string>{"web-1", "web-2"});
  CHECK(policy.exec.enabled);
  CHECK(policy.exec.max_stdout_bytes == 1'048'576);
  CHECK(policy.exec.max_stderr_bytes == 1'048'576);
  CHECK(policy.exec.max_stdin_bytes == 65'536);
  CHECK(policy.exec.max_duration_secs == 120);
  CHECK(policy.exec.max_concurrent_per_agent == 2);
  CHECK(policy.exec.max_concurrent_total == 8);
  CHECK(policy.exec.warn_stdout_bytes == 524'288);
  CHECK(policy.exec.warn_stderr_bytes == 0);
  CHECK(policy.exec.warn_duration_secs == 60);
  CHECK(policy.exec.default_cwd == "/var/lib/x0x");
  CHECK(policy.exec.audit_tasklist_id == "01HZX7Q2M4");
  REQUIRE(policy.entries.size() == 1);
  const Entry& entry = policy.entries[0];
  CHECK(entry.agent[0] == 0xab);
  CHECK(entry.machine[31] == 0xcd);
  CHECK(entry.description == "deploy bot");
  CHECK(entry.max_duration_secs == 60);
  REQUIRE(entry.commands.size() == 2);
  const Command& restart = entry.commands[0];
  REQUIRE(restart.argv.size() == 3);
  CHECK(restart.argv[2].text == "nginx");
  CHECK(restart.exe == "/usr/bin/systemctl");
  CHECK(restart.sha256->at(1) == 0x23);
  CHECK(restart.reason == "rolling restarts need it");
  CHECK(restart.cwd == "/srv");
  CHECK_FALSE(restart.stdin_allowed);
  CHECK_FALSE(restart.network);
  CHECK(restart.audit_hash);
  CHECK(restart.max_duration_secs == 20);
  CHECK(restart.max_stdout_bytes == 65'536);
  CHECK(restart.max_stderr_bytes == 65'536);
  CHECK(restart.max_stdin_bytes == 0);
  REQUIRE(restart.env.size() == 2);
  CHECK(restart.env[0].name == "SYSTEMD_COLORS");
  CHECK(restart.env[1].value == "dumb");
  CHECK(restart.limits.cpu_secs == 60);
  CHECK(restart.limits.memory_bytes == 536'870'912);
  CHECK(restart.limits.file_bytes == 67'108'864);
  CHECK(restart.limits.open_files == 256);
  CHECK(restart.limits.processes == 32);
  CHECK(restart.writable == std::vector<std::string>{"/run/systemd", "/var/tmp"});
  CHECK(restart.allow.size() == 1);
  REQUIRE(restart.deny.size() == 3);
  CHECK(restart.deny[2].argv.empty());
  const Command& render = entry.commands[1];
  CHECK(render.argv[2].kind == Token::Kind::integer);
  CHECK(render.writable == std::vector<std::string>{});
  CHECK(render.max_stdin_bytes == 4096);
  CHECK(render.limits.cpu_secs == 10);
  CHECK(render.env.at(0).name == "TZ");
}

TEST_CASE("the sample policy has 17 commands in 4 entries") {
  const Checked checked = check_text(corpus_file("ok_sample.toml"));
  REQUIRE(checked.policy.has_value());
  CHECK(checked.policy->entries.size() == 4);
  std::size_t commands = 0;
  for (const Entry& entry : checked.policy->entries) commands += entry.commands.size();
  CHECK(commands == 17);
}

TEST_CASE("warnings are lowered to the maximum") {
  const Checked checked = check_text("[exec]\nmax_stdout_bytes = 10\nmax_stderr_bytes = 20\nmax_duration_secs = 5\n");
  REQUIRE(checked.policy.has_value());
  CHECK(checked.policy->exec.warn_stdout_bytes == 10);
  CHECK(checked.policy->exec.warn_stderr_bytes == 20);
  CHECK(checked.policy->exec.warn_duration_secs == 5);
}

TEST_CASE("spans lead to the element, the table and the example") {
  const Checked checked = check_text(one_command(R"(["a", 'b<URL_PATH>'])", "allow = [[\"a\", \"b/\"]]"));
  REQUIRE(checked.policy.has_value());
  const Command& command = checked.policy->entries[0].commands[0];
  CHECK(command.span.line == 5);
  CHECK(command.span.length == 23);
  CHECK(command.argv_span.column == 8);
  CHECK(command.argv[1].span.column == 14);
  CHECK(command.argv[1].span.length == 13);
  CHECK(command.allow[0].span.line == 7);
  CHECK(command.allow[0].span.column == 10);
}

TEST_CASE("all problems of a file are reported, in its order") {
  const Checked checked =
      check_text("[exec]\nenabled = 1\nfoo = 2\n" + entry_text("bar = 1\n") +
                 command_text(R"(["./a", "<X>", "b;c"])", "env = { LD_PRELOAD = 1 }") + "[polcy]\n");
  CHECK_FALSE(checked.policy.has_value());
  CHECK(checked.summary() ==
        "E011 2:11, E010 3:1, E010 7:1, E027 9:9, E021 9:17, E026 9:25, E050 10:9, E011 10:22, E013 11:2");
}

TEST_CASE("a warning alone does not stop a policy") {
  const Checked checked = check_text("[other]\n");
  CHECK(checked.policy.has_value());
  CHECK(checked.summary() == "W001 1:2");
}

TEST_CASE("keys that are elsewhere at home say so") {
  CHECK(check_text("enabled = true\n").diagnostics.all().at(0).help == "`enabled` belongs in `[exec]`");
  CHECK(check_text("[exec]\nargv = []\n").diagnostics.all().at(0).help ==
        "`argv` belongs in `[[exec.allow.commands]]`");
  CHECK(check_text("[exec]\nmax-duration-secs = 1\n").diagnostics.all().at(0).help ==
        "did you mean `max_duration_secs`?");
}

TEST_CASE("near misses of the top-level names are errors, others are warnings") {
  for (const std::string_view name : {"exce", "exe", "Exec", "EXEC", "execs", "xec", "polcy", "Policy", "plicy"})
    CHECK_MESSAGE(check_text(fmt::format("[{}]\n", name)).summary() == "E013 1:2", name);
  for (const std::string_view name : {"owner", "allow", "metadata", "acl", "tool"})
    CHECK_MESSAGE(check_text(fmt::format("[{}]\n", name)).summary() == "W001 1:2", name);
}

TEST_CASE("limits of a token are met exactly") {
  const std::string longest(blob::kMaxTokenBytes, 'a');
  CHECK(check_text(one_command("[\"x\", \"" + longest + "\"]")).summary().empty());
  CHECK(check_text(one_command("[\"x\", \"" + longest + "a\"]")).summary() == "E030 6:14");
  CHECK(check_text(one_command("[\"x\", \"" + longest.substr(1) + "<URL_PATH>\"]")).summary().empty());
  CHECK(check_text(one_command("[\"x\", \"" + longest + "<URL_PATH>\"]")).summary() == "E030 6:14");
  std::string argv = "[\"x\"";
  for (std::uint32_t i = 1; i < blob::kMaxArgc; ++i) argv += ",\"\"";
  CHECK(check_text(one_command(argv + "]")).summary().empty());
  CHECK(check_text(one_command(argv + ",\"\"]")).summary().find("E029 6:") == 0);
  CHECK(check_text(one_command("[\"x\"]", "env = { A = \"" + longest.substr(2) + "\" }")).summary().empty());
  CHECK(check_text(one_command("[\"x\"]", "env = { A = \"" + longest.substr(1) + "\" }")).summary() == "E030 7:13");
}

TEST_CASE("numbers at the edges") {
  CHECK(check_text("[exec]\nmax_concurrent_total = 4294967295\n").summary().empty());
  CHECK(check_text("[exec]\nmax_stdout_bytes = 9223372036854775807\n").summary().empty());
  CHECK(check_text("[exec]\nwarn_stdout_bytes = 0\n").summary().empty());
  CHECK(check_text("[policy]\nversion = 0x7fffffffffffffff\n").policy->version == 0x7fffffffffffffff);
}

TEST_CASE("times are seconds since 1970, whatever their offset") {
  const auto expires = [](std::string_view time) {
    return check_text(fmt::format("[policy]\nexpires = {}\n", time)).policy->expires.value();
  };
  CHECK(expires("1970-01-01T00:00:01Z") == 1);
  CHECK(expires("1970-01-01 01:00:01+01:00") == 1);
  CHECK(expires("2000-02-29T12:00:00Z") == 951'825'600);
  CHECK(expires("2038-01-19T03:14:08.000Z") == 2'147'483'648);
  CHECK(expires("9999-12-31T23:59:59Z") == 253'402'300'799);
  CHECK(check_text("[policy]\nexpires = 1970-01-01T00:00:00Z\n").summary() == "E047 2:11");
  CHECK(check_text("[policy]\nexpires = 2030-01-01\n").summary() == "E011 2:11");
}

TEST_CASE("hostile files end in an error, not in a crash") {
  const auto repeat = [](std::string_view piece, std::size_t times) {
    std::string all;
    for (; times > 0; --times) all += piece;
    return all;
  };
  CHECK(check_text("a = " + repeat("[", 10000)).summary() == "E005 1:37");
  CHECK(check_text("a = " + repeat("{a=", 10000)).summary().find("E005") == 0);
  CHECK(check_text("[" + repeat("a.", 100000) + "a]").summary().find("E005") == 0);
  CHECK(check_text(repeat("\xff", 100000)).summary() == "E001 1:1");
  CHECK(check_text(std::string(100000, '\0')).summary() == "E002 1:1");
  CHECK(check_text(repeat("[[exec.allow]]\n", 1000)).diagnostics.errors() == 3000);
}

TEST_CASE("sha256 needs no exe, and a bare program is found in the fixed PATH") {
  CHECK(check_text(one_command("[\"uptime\"]", "sha256 = \"" + kAgentHex + "\"")).summary().empty());
}

}  // namespace
}  // namespace x0x::policyc
