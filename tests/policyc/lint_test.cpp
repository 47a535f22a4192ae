#include "policyc/lint.hpp"

#include <doctest/doctest.h>

#include "policyc/programs.hpp"
#include "tests/policyc/front_end.hpp"

namespace x0x::policyc {
namespace {

std::string lint(std::string_view argv, std::string_view more = "") {
  return check_text(one_command(argv, more)).summary();
}

TEST_CASE("programs that run other programs want a reason") {
  for (const std::string_view program :
       {"env",    "nice", "nohup", "stdbuf",  "timeout", "time",  "script",  "setsid", "taskset", "chrt",
        "ionice", "sudo", "doas",  "su",      "pkexec",  "xargs", "busybox", "toybox", "find",    "ssh",
        "tar",    "git",  "vi",    "less",    "man",     "gdb",   "make",    "awk",    "sed",     "sh",
        "bash",   "dash", "zsh",   "python3", "perl",    "ruby",  "node",    "php",    "lua5.4",  "python3.11"}) {
    CAPTURE(program);
    CHECK(runs_programs(program));
    CHECK(lint(fmt::format(R"(["/usr/bin/{}", "x"])", program)) == "W010 6:9");
    CHECK(lint(fmt::format(R"(["{}", "x"])", program), "reason = \"needed\"").empty());
    CHECK(lint(fmt::format(R"(["{}", "x"])", program), "reason = \" \"") == "W010 6:9");
  }
  for (const std::string_view program : {"cat", "uptime", "systemctl", "df", "x0x", "", "5"})
    CHECK_FALSE(runs_programs(program));
  CHECK(lint(R"(["ls"])", "exe = \"/usr/bin/busybox\"") == "W010 6:9");
}

TEST_CASE("code in the arguments of an interpreter is a stronger warning") {
  CHECK(lint(R"(["sh", "-c", "id"])") == "W011 6:15");
  CHECK(lint(R"(["bash", "-euxc", "id"])") == "W011 6:17");
  CHECK(lint(R"(["perl", "-e", "1"])") == "W011 6:17");
  CHECK(lint(R"(["node", "--eval=1"])") == "W011 6:17");
  CHECK(lint(R"(["python3", "-c", "1"])", "reason = \"x\"").empty());
  CHECK(lint(R"(["python3", "/opt/x.py", "--check"])") == "W010 6:9");
  CHECK_FALSE(takes_code("cat", "-c"));
  CHECK_FALSE(takes_code("sh", "c"));
}

TEST_CASE("a URL path with an open end is a warning") {
  for (const std::string_view open :
       {"<URL_PATH>", "http://<URL_PATH>", "http:<URL_PATH>", "http:/<URL_PATH>", "file://<URL_PATH>",
        "http://web<URL_PATH>", "http://web:<URL_PATH>", "http://[::1]<URL_PATH>", "--file=<URL_PATH>", "@<URL_PATH>",
        "--url=https://<URL_PATH>", "http://user:pw@web<URL_PATH>"})
    CHECK_MESSAGE(lint(fmt::format(R"(["get", "{}"])", open)) == "W012 6:16", open);
  for (const std::string_view fixed : {"http://web:80<URL_PATH>", "http://web/<URL_PATH>", "http://web/api<URL_PATH>",
                                       "http://[::1]:80<URL_PATH>", "/srv<URL_PATH>", "--url=http://web:1<URL_PATH>"})
    CHECK_MESSAGE(lint(fmt::format(R"(["get", "{}"])", fixed)).empty(), fixed);
}

TEST_CASE("curl must not read its configuration") {
  CHECK(lint(R"(["curl", "http://web:80/"])") == "W013 6:9");
  CHECK(lint(R"(["curl", "-s", "-q", "http://web:80/"])") == "W013 6:9");
  CHECK(lint(R"(["curl", "-q", "http://web:80/"])").empty());
  CHECK(lint(R"(["/usr/bin/curl", "--disable", "http://web:80/"])").empty());
}

TEST_CASE("journalctl must not page") {
  CHECK(lint(R"(["journalctl", "-n", "<INT>"])") == "W014 6:9");
  CHECK(lint(R"(["journalctl", "-n", "<INT>", "--no-pager"])").empty());
}

TEST_CASE("directories that everybody can write to are found behind dots") {
  CHECK(lint(R"(["/tmp/x"])") == "W015 6:9");
  CHECK(lint(R"(["/usr/../var//tmp/./x"])") == "W015 6:9");
  CHECK(lint(R"(["x"])", "exe = \"/dev/shm/x\"") == "W015 7:7");
  CHECK(lint(R"(["x"])", "cwd = \"/tmp\"") == "W015 7:7");
  CHECK(lint(R"(["/tmpfiles/x"])").empty());
  CHECK(lint(R"(["/tmp/../usr/bin/x"])").empty());
  CHECK(lint(R"(["x"])", "writable = [\"/var/tmp\"]").empty());
}

}  // namespace
}  // namespace x0x::policyc
