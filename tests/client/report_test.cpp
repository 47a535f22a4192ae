// client/report.cpp: the status and the words for every way a session can end.
#include "client/report.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/client/peer.hpp"

using namespace x0x;
using namespace x0x::client;

namespace {

Outcome killed(int signal, std::uint64_t duration_ms, std::uint32_t timeout_ms,
               std::initializer_list<wire::WarningKind> warnings = {}) {
  Outcome outcome;
  outcome.session = test::test_session();
  outcome.timeout_ms = timeout_ms;
  outcome.exit = Exit{};
  outcome.exit->signal = signal;
  outcome.exit->duration_ms = duration_ms;
  for (const wire::WarningKind kind : warnings) outcome.warnings.push_back({kind, ""});
  return outcome;
}

}  // namespace

TEST_CASE("cap kill with a requested timeout: judged by the time") {
  CHECK(killed_by_cap(killed(SIGKILL, 30'000, 30'000)));
  CHECK(killed_by_cap(killed(SIGTERM, 25'003, 30'000)));  // obeyed the SIGTERM 5 s before the end
  CHECK_FALSE(killed_by_cap(killed(SIGTERM, 20'000, 30'000)));
  CHECK(killed_by_cap(killed(SIGTERM, 2'000, 2'000)));  // 5 s or less: SIGTERM at the end itself
  CHECK(killed_by_cap(killed(SIGTERM, 1'950, 2'000)));  // the reported time starts a moment later
  CHECK_FALSE(killed_by_cap(killed(SIGTERM, 1'000, 2'000)));
  CHECK_FALSE(killed_by_cap(killed(SIGSEGV, 30'000, 30'000)));
}

TEST_CASE("cap kill without a timeout: only after the enforcer's own warning") {
  using wire::WarningKind;
  CHECK(killed_by_cap(killed(SIGKILL, 300'000, 0, {WarningKind::duration_approaching_cap})));
  CHECK_FALSE(killed_by_cap(killed(SIGKILL, 300'000, 0)));
  CHECK_FALSE(killed_by_cap(killed(SIGSEGV, 300'000, 0, {WarningKind::duration_approaching_cap})));
}

TEST_CASE("another proven cause is never called a cap kill") {
  using wire::WarningKind;
  for (const WarningKind other : {WarningKind::lease_expired, WarningKind::peer_disconnected, WarningKind::cancelled})
    CHECK_FALSE(killed_by_cap(killed(SIGKILL, 30'000, 30'000, {WarningKind::duration_approaching_cap, other})));
  Outcome cancelled = killed(SIGTERM, 30'000, 30'000);
  cancelled.cancelled_here = true;
  CHECK_FALSE(killed_by_cap(cancelled));
  CHECK(ending_of(cancelled).status == 128 + SIGTERM);
}

TEST_CASE("kills that were not the command's own doing are 255 and say why") {
  using wire::WarningKind;
  const auto why = [](const Outcome& outcome) {
    CHECK(ending_of(outcome).status == 255);
    CHECK(ending_of(outcome).kind == "killed");
    return ending_of(outcome).why;
  };
  CHECK(why(killed(SIGKILL, 10'000, 10'000)) == "its time was up: SIGKILL after 10.0 s (`--timeout` was 10.0 s)");
  CHECK(why(killed(SIGTERM, 9'000, 0, {WarningKind::lease_expired})).starts_with("the lease ran out: SIGTERM"));
  CHECK(why(killed(SIGTERM, 9'000, 0, {WarningKind::peer_disconnected})).starts_with("the connection was lost"));
  CHECK(why(killed(SIGTERM, 9'000, 0, {WarningKind::cancelled})).starts_with("the enforcer cancelled"));
  CHECK(ending_of(killed(SIGTERM, 9'000, 0)).status == 143);
}

TEST_CASE("codes pass through, impossible ones do not") {
  Outcome outcome = killed(0, 1, 0);
  outcome.exit->signal.reset();
  for (const int code : {0, 1, 126, 127, 137, 255}) {
    outcome.exit->code = code;
    CHECK(ending_of(outcome).status == code);
    CHECK(ending_of(outcome).kind.empty());
  }
  for (const int code : {-1, 256, 0x7fffffff}) {
    outcome.exit->code = code;
    CHECK(ending_of(outcome).status == 255);
    CHECK_FALSE(ending_of(outcome).kind.empty());
  }
  outcome.exit->code.reset();
  CHECK(ending_of(outcome).status == 255);
  CHECK(ending_of(killed(0, 1, 0)).status == 255);
  CHECK(ending_of(killed(-5, 1, 0)).status == 255);
  CHECK(ending_of(killed(1000, 1, 0)).status == 255);
}

TEST_CASE("the JSON object holds everything") {
  Outcome outcome = killed(SIGKILL, 1234, 0, {wire::WarningKind::stdout_cap_hit});
  outcome.out = std::string("\0\xff", 2);
  outcome.err = "e";
  outcome.exit->stdout_bytes_total = 99;
  outcome.exit->stderr_bytes_total = 1;
  outcome.exit->truncated = true;
  const nlohmann::json json = nlohmann::json::parse(result_json(outcome, ending_of(outcome)));
  CHECK(json["request_id"] == "01020304-0506-0708-090a-0b0c0d0e0f10");
  CHECK(json["code"].is_null());
  CHECK(json["signal"] == 9);
  CHECK(json["duration_ms"] == 1234);
  CHECK(json["stdout_b64"] == "AP8=");
  CHECK(json["stderr_b64"] == "ZQ==");
  CHECK(json["stdout_bytes_total"] == 99);
  CHECK(json["stderr_bytes_total"] == 1);
  CHECK(json["truncated"] == true);
  CHECK(json["denial_reason"].is_null());
  CHECK(json["warnings"][0]["kind"] == "StdoutCapHit");
  CHECK(json["error"] == "killed: SIGKILL after 1.2 s");
  CHECK(json["status"] == 137);
  outcome.exit->denial_reason = wire::DenialReason::argv_not_allowed;
  CHECK(nlohmann::json::parse(result_json(outcome, ending_of(outcome)))["denial_reason"] == "argv_not_allowed");
  Outcome lost;
  lost.lost = "lost the enforcer";
  const nlohmann::json none = nlohmann::json::parse(result_json(lost, ending_of(lost)));
  CHECK(none["code"].is_null());
  CHECK(none["error"] == "transport: lost the enforcer");
}

TEST_CASE("base64") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("\xfb\xff\xbf") == "+/+/");
}

TEST_CASE("hostile text is shown, not obeyed") {
  CHECK(printable("plain ü 中 😀") == "plain ü 中 😀");
  CHECK(printable("a\033]0;x\007b\nc\r") == "a\\u{1b}]0;x\\u{7}b\\u{a}c\\u{d}");
  CHECK(printable(std::string_view("\0", 1)) == "\\u{0}");
  CHECK(printable("\xc2\x9b") == "\\u{9b}");            // a one-character CSI
  CHECK(printable("x\xe2\x80\xaey") == "x\\u{202e}y");  // right-to-left override
  CHECK(printable("\xef\xbb\xbf") == "\\u{feff}");
  CHECK(printable("\xff\xc3(") == "\\xff\\xc3(");
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");
}

TEST_CASE("no colour where there is no terminal") {
  CHECK(error_line("denied", "x", -1) == "x0x-exec: denied: x");
  CHECK(warning_line({wire::WarningKind::cancelled, ""}, -1) == "x0x-exec: warning: Cancelled");
}
