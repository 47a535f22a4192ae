// client/inspect.cpp: documents of the enforcer as a person reads them.
#include "client/inspect.hpp"

#include <doctest/doctest.h>

#include "client/connection.hpp"

using namespace x0x::client;

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("sessions as a table") {
  const std::string text = show_sessions(
      R"({"sessions":[{"request_id":"00112233-4455-6677-8899-aabbccddeeff","agent_id":"abcdef0123456789","pid":77,)"
      R"("duration_ms":12345,"argv_summary":"sleep 60\u001b[2J"},{"request_id":5},7]})",
      Format::human);
  CHECK(contains(text, "ID "));
  CHECK(contains(text, "00112233-4455-6677-8899-aabbccddeeff  abcdef01        77      12.3s  sleep 60\\u{1b}[2J\n"));
  CHECK(contains(text, "\n5  "));
  CHECK(show_sessions(R"({"sessions":[]})", Format::human) == "no session is running\n");
}

TEST_CASE("diagnostics as a tree, with escapes shown") {
  const std::string text = show_diagnostics(
      R"({"enabled":true,"active_per_agent":{},"totals":{"requests_received":18,"denial_breakdown":{"argv_not_allowed":2}},)"
      R"("recent_warnings":[],"policy":{"name":"a\u0007b","expires":null}})",
      Format::human);
  CHECK(contains(text, "enabled                        yes\n"));
  CHECK(contains(text, "active per agent: none\n"));
  CHECK(contains(text,
                 "totals\n  requests received            18\n  denial breakdown\n    argv not allowed           2\n"));
  CHECK(contains(text, "recent warnings: none\n"));
  CHECK(contains(text, "a\\u{7}b\n"));
  CHECK(contains(text, "expires                      -\n"));
}

TEST_CASE("a warning is one row, with the start of its agent's id") {
  const std::string text = show_diagnostics(
      R"({"recent_warnings":[{"kind":"Cancelled","agent_id":"0123456789abcdef","request_id":"0123456789abcdef"}]})",
      Format::human);
  CHECK(text == "recent warnings\n  Cancelled  01234567  0123456789abcdef\n");
}

TEST_CASE("json is the enforcer's document, laid out") {
  CHECK(show_diagnostics(R"({"b":1,"a":[]})", Format::json) == "{\n  \"b\": 1,\n  \"a\": []\n}\n");
  CHECK(show_sessions(R"({"sessions":[]})", Format::json) == "{\n  \"sessions\": []\n}\n");
}

TEST_CASE("what is not a document is refused") {
  for (const char* const bad : {"", "nonsense", "[1]", "7", "{\"a\":1} x"}) {
    CHECK_THROWS_AS(show_diagnostics(bad, Format::human), Failure);
    CHECK_THROWS_AS(show_sessions(bad, Format::json), Failure);
  }
  CHECK_THROWS_AS(show_sessions("{}", Format::human), Failure);
}
