#include "policyc/cmd_check.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/policyc/front_end.hpp"
#include "tests/support/run_policyc.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

TEST_CASE("exit status: 0 clean, 1 problems, 2 what could not be read") {
  const Scratch scratch;
  const std::string ok = scratch.put("ok.toml", "[exec]\n");
  const std::string warning = scratch.put("warning.toml", "[other]\n");
  const std::string bad = scratch.put("bad.toml", "[exec]\nenabled = 1\n");
  const std::string absent = scratch.path("absent.toml");
  CHECK(run_policyc({"check", ok}).status == 0);
  CHECK(run_policyc({"check", warning}).status == 0);
  CHECK(run_policyc({"check", "--strict", warning}).status == 1);
  CHECK(run_policyc({"check", ok, bad}).status == 1);
  CHECK(run_policyc({"check", absent, ok}).status == 2);
  CHECK(run_policyc({"check"}).status == 2);
  CHECK(run_policyc({"check", "--format", "xml", ok}).status == 2);
  CHECK(run_policyc({"check", "-", "-"}).status == 2);
}

TEST_CASE("an unreadable file does not hide the others") {
  const Scratch scratch;
  const std::string bad = scratch.put("bad.toml", "[exec]\nenabled = 1\n");
  const Ran ran = run_policyc({"check", scratch.path("absent"), scratch.path(""), bad});
  CHECK(ran.status == 2);
  CHECK(ran.err.find("No such file") != std::string::npos);
  CHECK(ran.err.find("it is a directory") != std::string::npos);
  CHECK(ran.err.find("bad.toml:2:11: error[E011]") != std::string::npos);
  CHECK(ran.err.ends_with("1 error in " + bad + "\n"));
  CHECK(ran.out.empty());
}

TEST_CASE("standard input is read for -") {
  const Ran ran = run_policyc({"check", "-"}, "[exec]\nenabled = 1\n");
  CHECK(ran.status == 1);
  CHECK(ran.err.find("<stdin>:2:11: error[E011]") == 0);
}

TEST_CASE("formats for programs go to standard output, whole") {
  const Scratch scratch;
  std::string many = "[exec]\n";
  for (int i = 0; i < 250; ++i) many += fmt::format("key_{} = 1\n", i);
  const std::string bad = scratch.put("bad.toml", many);
  const Ran json = run_policyc({"check", "--format", "json", bad});
  CHECK(json.status == 1);
  CHECK(json.err.empty());
  CHECK(json.out.find("\"errors\": 250") != std::string::npos);
  CHECK(json.out.find("key_249") != std::string::npos);
  CHECK(run_policyc({"check", bad}).err.find("150 more not shown") != std::string::npos);
  CHECK(run_policyc({"check", "--format", "sarif", bad}).out.find("\"2.1.0\"") != std::string::npos);
  CHECK(run_policyc({"check", "--format", "github", bad}).out.find("::error file=") == 0);
  CHECK(run_policyc({"check", "--format", "json", "--strict", scratch.put("w.toml", "[other]\n")})
            .out.find("\"severity\":\"error\"") != std::string::npos);
}

TEST_CASE("endless input is refused at the limit") {
  const Ran ran = run_policyc({"check", "-"}, std::string(kMaxSourceBytes + 1000, '#'));
  CHECK(ran.status == 2);
  CHECK(ran.err == "x0x-policyc: standard input is larger than 64 MiB, the most a policy file may have\n");
}

TEST_CASE("the back end adds its findings in the order of the file") {
  const Scratch scratch;
  CheckOptions options;
  options.files = {scratch.put("p.toml", "[exec]\n[other]\n")};
  options.format = ReportFormat::github;
  int calls = 0;
  options.back_end = [&](const Source&, const Policy&, Diagnostics& diagnostics) {
    ++calls;
    diagnostics.report(Kind::example_failed, {1, 1, 1}, "said no");
  };
  CHECK(run_check(options) == 1);
  CHECK(calls == 1);
  options.files = {scratch.put("broken.toml", "[exec]\nenabled = 1\n")};
  CHECK(run_check(options) == 1);
  CHECK(calls == 1);
}

TEST_CASE("colours need a terminal and nobody against it") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK_FALSE(wants_colour(ends[1]));
  close(ends[0]);
  close(ends[1]);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return;
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  CHECK(wants_colour(terminal));
  setenv("NO_COLOR", "1", 1);
  CHECK_FALSE(wants_colour(terminal));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  CHECK_FALSE(wants_colour(terminal));
  close(terminal);
}

}  // namespace
}  // namespace x0x::policyc
