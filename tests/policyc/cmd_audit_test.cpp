// `audit verify` as its users meet it: files in any order, exact places, JSON, and what it refuses to read.
#include "policyc/cmd_audit.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "policyc/audit_record.hpp"
#include "policyc/line_reader.hpp"
#include "policyc/user_error.hpp"
#include "tests/support/audit_log.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

struct Said {
  int code;
  std::string out, err;
};

Said verify(const AuditVerifyOptions& options) {
  std::ostringstream out, err;
  const int code = run_audit_verify(options, out, err);
  return {code, out.str(), err.str()};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Three files of a rotated log.
struct Rotated {
  Scratch scratch;
  AuditLog log;
  std::vector<std::string> paths;

  Rotated() {
    for (int file = 0; file < 3; ++file) {
      AuditLog part = log;
      part.lines.clear();
      part.add(file == 0 ? "policy_loaded" : "log_reopened");
      for (int i = 0; i < 5; ++i) part.session(file * 10 + i);
      paths.push_back(scratch.put("exec.log." + std::to_string(3 - file), part.text()));
      log.digests = part.digests;
    }
  }
  AuditVerifyOptions options() const { return {.logs = paths}; }
};

TEST_CASE("files in any order are one chain; success says what to keep") {
  const Rotated r;
  AuditVerifyOptions options = r.options();
  std::ranges::sort(options.logs);
  do {
    const Said said = verify(options);
    CHECK(said.code == kExitOk);
    CHECK(said.err == "");
    CHECK(said.out == "intact\n  files     " + r.paths[0] + "\n            " + r.paths[1] + "\n            " +
                          r.paths[2] + "\n  records   48, seq 0 to 47\n" +
                          "  time      2026-11-18T10:00:00.000Z to 2026-11-18T10:00:00.047Z\n  head      " +
                          r.log.digests.back() + "\n");
  } while (std::ranges::next_permutation(options.logs).found);
}

TEST_CASE("the head that was printed holds against the log later, and not against a shorter one") {
  const Rotated r;
  AuditVerifyOptions options = r.options();
  options.head = r.log.digests[20];
  CHECK(has(verify(options).out, "  found     the given head is seq 20\n"));
  options.logs.pop_back();
  options.head = r.log.digests[40];
  options.min_seq = 40;
  const Said said = verify(options);
  CHECK(said.code == kExitRefused);
  CHECK(said.out == "");
  CHECK(has(said.err, r.paths[1] + ":16: tail_truncated: "));
  CHECK(has(said.err, "  expected  seq 40 or later at the end\n  found     seq 31\n"));
  CHECK(has(said.err, r.paths[1] + ":16: head_missing: "));
  CHECK(has(said.err, "broken: 2 breaks in 32 records\n"));
  options.head = "abc";
  CHECK_THROWS_WITH_AS(verify(options), "--head `abc`: a digest is 64 lower-case hexadecimal digits", UserError);
}

TEST_CASE("a break is given with its file, line, byte offset and seq, to people and as JSON") {
  const Rotated r;
  std::string text = r.scratch.text("exec.log.2");
  const std::size_t at = text.find("uptime", text.find("uptime") + 1);
  const std::size_t start = text.rfind('\n', at) + 1;
  text[at] = 'U';
  r.scratch.put("exec.log.2", text);
  AuditVerifyOptions options = r.options();
  const Said said = verify(options);
  CHECK(said.code == kExitRefused);
  CHECK(has(said.err, r.paths[1] + ":5: line_changed: this line was changed after it was written"));
  CHECK(has(said.err, "\n  at        byte " + std::to_string(start) + ", seq 20\n"));
  options.json = true;
  const Said json_said = verify(options);
  CHECK(json_said.code == kExitRefused);
  CHECK(json_said.err == "");
  const auto json = nlohmann::json::parse(json_said.out);
  CHECK(json["intact"] == false);
  CHECK(json["break_count"] == 1);
  const auto& broken = json["breaks"][0];
  CHECK(broken["kind"] == "line_changed");
  CHECK(broken["file"] == r.paths[1]);
  CHECK(broken["line"] == 5);
  CHECK(broken["offset"] == start);
  CHECK(broken["seq"] == 20);
  CHECK(broken["expected"] == r.log.digests[20]);
  CHECK(json["files"] == nlohmann::json(r.paths));
}

TEST_CASE("JSON of an intact log") {
  const Rotated r;
  AuditVerifyOptions options = r.options();
  options.json = true;
  options.head = r.log.digests[3];
  const auto json = nlohmann::json::parse(verify(options).out);
  CHECK(json["intact"] == true);
  CHECK(json["records"] == 48);
  CHECK(json["first_seq"] == 0);
  CHECK(json["last_seq"] == 47);
  CHECK(json["head"] == r.log.digests.back());
  CHECK(json["given_head_seq"] == 3);
  CHECK(json["breaks"].empty());
}

TEST_CASE("what cannot be read is said, and is not called broken") {
  const Rotated r;
  CHECK_THROWS_AS(verify({.logs = {r.scratch.path("none")}}), UserError);
  CHECK_THROWS_AS(verify({.logs = {r.scratch.path(".")}}), UserError);
  CHECK_THROWS_AS(verify({.logs = {r.paths[0], r.paths[0]}}), UserError);
  const std::string gz = r.scratch.put("exec.log.4.gz", std::string("\x1f\x8b\x08 and so on", 14));
  CHECK_THROWS_WITH_AS(verify({.logs = {gz}}), doctest::Contains("is compressed; give <(zcat "), UserError);
}

TEST_CASE("lines of every length come whole from a buffer that is smaller; one that is too long comes cut") {
  const Scratch scratch;
  std::string text;
  std::vector<std::size_t> lengths = {0, 1, 65535, 65536, 65537, 200000, 5, 300000, 7};
  for (const std::size_t length : lengths) text += std::string(length, 'a') + '\n';
  text += "end";
  LineReader reader(scratch.put("lines", text), 200000);
  Line line;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    CAPTURE(i);
    REQUIRE(reader.next(line));
    CHECK(line.ended);
    CHECK(line.number == i + 1);
    CHECK(line.offset == offset);
    if (lengths[i] <= 200000)
      CHECK(line.text.size() == lengths[i]);
    else
      CHECK(line.text.size() > 200000);
    offset += lengths[i] + 1;
  }
  REQUIRE(reader.next(line));
  CHECK(line.text == "end");
  CHECK_FALSE(line.ended);
  CHECK(line.offset == offset);
  CHECK_FALSE(reader.next(line));
}

TEST_CASE("a huge line of garbage takes no more memory than a line may") {
  const Scratch scratch;
  AuditLog log;
  log.add("policy_loaded");
  const std::string path = scratch.put("huge", log.text() + std::string(20u << 20, 'x') + "\n");
  const Said said = verify({.logs = {path}});
  CHECK(said.code == kExitRefused);
  CHECK(has(said.err, path + ":2: not_a_record: "));
  CHECK(said.err.size() < 1000);
}

}  // namespace
}  // namespace x0x::policyc
