#include "policyc/audit_record.hpp"

#include <doctest/doctest.h>

#include <string>

namespace x0x::policyc {
namespace {

const std::string kPrev(64, 'a');
const std::string kStart = R"({"seq":7,"prev":")" + kPrev + R"(","ts":"2026-11-18T10:00:00.000Z","event":)";
const std::string kId = "00112233-4455-6677-8899-aabbccddeeff";

TEST_CASE("the fields of a record") {
  const std::string line = kStart + R"("exit","torn_bytes":12,"request_id":")" + kId + R"(","code":0})";
  const auto record = parse_audit_record(line);
  REQUIRE(record);
  CHECK(record->seq == 7);
  CHECK(record->prev.bytes[31] == 0xaa);
  CHECK(record->ts == "2026-11-18T10:00:00.000Z");
  CHECK(record->event == "exit");
  CHECK(record->torn_bytes == 12);
  CHECK(record->request_id == kId);
  CHECK_FALSE(record->spawn_failed);
  CHECK(parse_audit_record(kStart + R"("stopped"})"));
  CHECK(parse_audit_record(kStart + R"("malformed","request_id":null})")->request_id.empty());
  CHECK(parse_audit_record(kStart + R"("denial","reason":"spawn_failed","step":"exec"})")->spawn_failed);
}

TEST_CASE("what is not a record") {
  const std::string good = kStart + R"("stopped"})";
  REQUIRE(parse_audit_record(good));
  for (std::size_t cut = 0; cut < good.size(); ++cut) CHECK_FALSE(parse_audit_record(good.substr(0, cut)));
  CHECK_FALSE(parse_audit_record(good + "}"));
  CHECK_FALSE(parse_audit_record(" " + good));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return parse_audit_record(text).has_value();
  };
  CHECK(with("7", "0"));
  CHECK(with("7", "18446744073709551615"));
  CHECK_FALSE(with("7", "18446744073709551616"));
  CHECK_FALSE(with("7", "07"));
  CHECK_FALSE(with("7", "-7"));
  CHECK_FALSE(with("7", ""));
  CHECK_FALSE(with("\"seq\":7", "\"seq\": 7"));
  CHECK_FALSE(with("aaa", "AAA"));
  CHECK_FALSE(with("aaa", "aa"));
  CHECK_FALSE(with("2026", "26"));
  CHECK_FALSE(with("stopped", "Stopped"));
  CHECK_FALSE(with("stopped", ""));
  CHECK_FALSE(parse_audit_record(kStart + R"("exit","request_id":"short"})"));
  CHECK_FALSE(parse_audit_record(kStart + R"("exit","torn_bytes":x})"));
}

TEST_CASE("a digest is 64 lower-case digits, and comes back as it was") {
  char room[65];
  const std::string hex = "00ff0123456789abcdef" + std::string(44, '7');
  REQUIRE(parse_digest(hex));
  CHECK(digest_hex(*parse_digest(hex), room) == hex);
  CHECK_FALSE(parse_digest(hex + "0"));
  CHECK_FALSE(parse_digest(hex.substr(1)));
  CHECK_FALSE(parse_digest("g" + hex.substr(1)));
  CHECK_FALSE(parse_digest("A" + hex.substr(1)));
}

}  // namespace
}  // namespace x0x::policyc
