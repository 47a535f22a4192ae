// client/options.cpp: what is ours, what is the command's, and what is refused.
#include "client/options.hpp"

#include <doctest/doctest.h>

#include "client/connection.hpp"

using namespace x0x::client;

namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "x0x-exec");
  return parse_options(static_cast<int>(words.size()), words.data());
}
std::string fault(std::vector<const char*> words) {
  try {
    parse(std::move(words));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("all options") {
  const Options options = parse({"--agent", "A", "--machine=M", "--socket", "/s", "--timeout", "1.5", "--stdin-file",
                                 "-", "--json", "--", "echo", "42"});
  CHECK(options.action == Action::run);
  CHECK(options.settings.agent == "A");
  CHECK(options.settings.machine == "M");
  CHECK(options.settings.socket == "/s");
  CHECK(options.timeout_ms == 1500);
  CHECK(options.stdin_file == "-");
  CHECK(options.json);
  CHECK(options.argv == Words{"echo", "42"});
}

TEST_CASE("everything after the first -- is the command's, untouched") {
  CHECK(parse({"--", "--help", "", "--", "-h", " a b ", "--json"}).argv ==
        Words{"--help", "", "--", "-h", " a b ", "--json"});
  CHECK_FALSE(parse({"--", "x", "--json"}).json);
  CHECK(parse({"--", "sessions"}).action == Action::run);
  CHECK(parse({"--", "cancel", "x"}).argv == Words{"cancel", "x"});
  CHECK(parse({"--", ""}).argv == Words{""});
}

TEST_CASE("words of ours count only in the first place") {
  CHECK(parse({"sessions"}).action == Action::sessions);
  CHECK(parse({"diagnostics"}).format == Format::human);
  CHECK(parse({"diagnostics", "--format", "json", "--socket", "/s"}).format == Format::json);
  CHECK(parse({"cancel", "abc"}).cancel_id == "abc");
  CHECK(contains(fault({"--socket", "/s", "sessions"}), "`sessions` must be the first argument"));
}

TEST_CASE("help and version need nothing else") {
  CHECK(parse({"--help"}).action == Action::help);
  CHECK(parse({"-h"}).action == Action::help);
  CHECK(parse({"--version"}).action == Action::version);
  CHECK(parse({"sessions", "--help"}).action == Action::help);
  CHECK(parse({"cancel", "-h"}).action == Action::help);
}

TEST_CASE("refusals say what to do") {
  CHECK(contains(fault({}), "no command: write it after `--`"));
  CHECK(contains(fault({"--"}), "no command"));
  CHECK(contains(fault({"ls", "-l"}), "`ls` stands before `--`"));
  CHECK(contains(fault({"--agnet", "x", "--", "ls"}), "unknown option `--agnet`"));
  CHECK(contains(fault({"--agent"}), "--agent"));
  CHECK(contains(fault({"--timeout", "0", "--", "ls"}), "must be more than 0"));
  CHECK(contains(fault({"--timeout", "-3", "--", "ls"}), "must be more than 0"));
  CHECK(contains(fault({"--timeout", "nan", "--", "ls"}), "must be more than 0"));
  CHECK(contains(fault({"--timeout", "4294968", "--", "ls"}), "at most 4294967"));
  CHECK(contains(fault({"--timeout", "soon", "--", "ls"}), "--timeout"));
  CHECK(contains(fault({"--stdin-file", "", "--", "ls"}), "`--stdin-file` is empty"));
  CHECK(contains(fault({"--", "ok", "\xff"}), "token 1 of the command is not UTF-8"));
  CHECK(contains(fault({"cancel"}), "needs the id"));
  CHECK(contains(fault({"sessions", "now"}), "unexpected argument `now`"));
  CHECK(contains(fault({"diagnostics", "--format", "xml"}), "`--format` is `json` or `human`"));
}

TEST_CASE("a tiny timeout does not become none") {
  CHECK(parse({"--timeout", "0.0001", "--", "ls"}).timeout_ms == 1);
  CHECK(parse({"--timeout", "4294967", "--", "ls"}).timeout_ms == 4294967000u);
}
