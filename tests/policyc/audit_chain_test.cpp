// Every thing that can be done to an audit log, and what the chain says about it.
#include "policyc/audit_chain.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/audit_log.hpp"

namespace x0x::policyc {
namespace {

using Lines = std::vector<std::string>;

// Lines of one file; several files are given one after the other.
AuditFindings follow(const std::vector<Lines>& files, const AuditAnchor& anchor = {}) {
  AuditChain chain(anchor);
  for (const Lines& lines : files) {
    chain.begin_file();
    std::uint64_t number = 0, offset = 0;
    for (const std::string& line : lines) {
      chain.line(line, true, ++number, offset);
      offset += line.size() + 1;
    }
  }
  return chain.finish();
}

// policy_loaded, three sessions of three records, stopped: seq 0 to 10.
AuditLog busy_log() {
  AuditLog log;
  log.add("policy_loaded", R"("enabled":true)");
  for (int i = 0; i < 3; ++i) log.session(i);
  log.add("stopped");
  return log;
}

const AuditBreak& only_break(const AuditFindings& found) {
  REQUIRE(found.breaks.size() == 1);
  REQUIRE(found.break_count == 1);
  return found.breaks[0];
}

std::uint64_t offset_of(const Lines& lines, std::size_t index) {
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < index; ++i) offset += lines[i].size() + 1;
  return offset;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
}

TEST_CASE("an intact log: counts, times and the head") {
  const AuditLog log = busy_log();
  const AuditFindings found = follow({log.lines});
  CHECK(found.break_count == 0);
  CHECK(found.records == 11);
  CHECK(found.first_seq == 0);
  CHECK(found.last_seq == 10);
  CHECK(found.first_ts == "2026-11-18T10:00:00.000Z");
  CHECK(found.last_ts == "2026-11-18T10:00:00.010Z");
  CHECK(log.hex(found.head) == log.digests.back());
}

TEST_CASE("a changed line is named, whichever field and whichever line it is") {
  const AuditLog log = busy_log();
  for (std::size_t i = 0; i + 1 < log.lines.size(); ++i) {
    CAPTURE(i);
    Lines lines = log.lines;
    replace(lines[i], "2026", "2027");
    const AuditFindings found = follow({lines});
    const AuditBreak& broken = only_break(found);
    CHECK(broken.kind == AuditBreakKind::line_changed);
    CHECK(broken.place.line == i + 1);
    CHECK(broken.place.offset == offset_of(lines, i));
    CHECK(broken.seq == i);
    CHECK(broken.expected == log.digests[i]);
    CHECK(broken.found == AuditLog::hex(digest_of(AuditLog::bytes(lines[i]))));
  }
}

TEST_CASE("a changed `prev` is one break, at the line it was changed in") {
  const AuditLog log = busy_log();
  for (std::size_t i = 1; i + 1 < log.lines.size(); ++i) {
    CAPTURE(i);
    Lines lines = log.lines;
    replace(lines[i], log.digests[i - 1], std::string(64, 'f'));
    const AuditFindings found = follow({lines});
    const AuditBreak& broken = only_break(found);
    CHECK(broken.kind == AuditBreakKind::line_changed);
    CHECK(broken.place.line == i + 1);
  }
  Lines lines = log.lines;
  replace(lines[0], std::string(64, '0'), std::string(64, 'f'));
  const AuditFindings found = follow({lines});
  CHECK(found.breaks[0].kind == AuditBreakKind::line_changed);
  CHECK(found.breaks[0].place.line == 1);
}

TEST_CASE("of the last two lines it cannot be told which was changed, and that is said") {
  const AuditLog log = busy_log();
  Lines lines = log.lines;
  replace(lines[10], log.digests[9], std::string(64, 'f'));
  const AuditFindings found = follow({lines});
  const AuditBreak& broken = only_break(found);
  CHECK(broken.place.line == 10);
  CHECK(broken.meaning.find("or the `prev` of the one after it (line 11)") != std::string::npos);
}

TEST_CASE("removed lines: which, and how many") {
  const AuditLog log = busy_log();
  Lines lines = log.lines;
  lines.erase(lines.begin() + 4, lines.begin() + 7);
  const AuditFindings found = follow({lines});
  const AuditBreak& broken = only_break(found);
  CHECK(broken.kind == AuditBreakKind::lines_removed);
  CHECK(broken.place.line == 5);
  CHECK(broken.seq == 7);
  CHECK(broken.expected == "seq 4");
  CHECK(broken.found == "seq 7");
  CHECK(broken.meaning == "lines were removed before this one: 3 records are missing (seq 4 to 6)");
}

TEST_CASE("swapped and moved lines") {
  const AuditLog log = busy_log();
  for (std::size_t i = 1; i + 2 < log.lines.size(); ++i) {
    CAPTURE(i);
    Lines lines = log.lines;
    std::swap(lines[i], lines[i + 1]);
    const AuditFindings found = follow({lines});
    const AuditBreak& broken = only_break(found);
    CHECK(broken.kind == AuditBreakKind::lines_swapped);
    CHECK(broken.place.line == i + 1);
    CHECK(broken.expected == "seq " + std::to_string(i));
  }
  Lines lines = log.lines;
  std::rotate(lines.begin() + 2, lines.begin() + 4, lines.begin() + 8);  // 0 1 4 5 6 7 2 3 8
  const AuditFindings found = follow({lines});
  const AuditBreak& moved = only_break(found);
  CHECK(moved.kind == AuditBreakKind::lines_swapped);
  CHECK(moved.meaning == "seq 2 to 3 stand after seq 7: lines were put in another order");
  lines.erase(lines.begin() + 6);
  const AuditFindings fewer = follow({lines});
  CHECK(only_break(fewer).meaning ==
        "seq 2 to 3 stand after seq 7: lines were put in another order, and 1 line was removed");
}

TEST_CASE("repeated and foreign lines") {
  const AuditLog log = busy_log();
  Lines lines = log.lines;
  lines.insert(lines.begin() + 6, lines[3]);
  AuditFindings found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::line_repeated);
  CHECK(only_break(found).place.line == 7);
  CHECK(only_break(found).meaning == "this line is a copy of one before it");

  replace(lines[6], "2026", "2027");
  found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::line_repeated);
  CHECK(only_break(found).meaning == "this line was put here, or belongs further up");

  for (const char* foreign : {"hello", "", "{}", R"({"seq":6,"prev":"00","ts":"x","event":"exit"})"}) {
    CAPTURE(foreign);
    lines = log.lines;
    lines.insert(lines.begin() + 6, foreign);
    found = follow({lines});
    CHECK(only_break(found).kind == AuditBreakKind::not_a_record);
    CHECK(only_break(found).place.line == 7);
    lines = log.lines;
    lines[6] = foreign;  // in the place of a record: still one break
    found = follow({lines});
    CHECK(only_break(found).kind == AuditBreakKind::not_a_record);
    CHECK(only_break(found).seq == 6);
  }
  lines = log.lines;
  lines[4].append(kMaxAuditLineBytes, ' ');
  found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::not_a_record);
}

TEST_CASE("the last line is no record's business, so it must at least be JSON") {
  AuditLog log = busy_log();
  log.lines.back().insert(log.lines.back().size() - 1, ",\"more\":}");
  const AuditFindings found = follow({log.lines});
  CHECK(only_break(found).kind == AuditBreakKind::not_a_record);
}

TEST_CASE("rotated files: the chain carries on, and a file that is missing is named") {
  AuditLog log = busy_log();
  log.add("log_reopened");
  for (int i = 0; i < 3; ++i) log.session(3 + i);
  log.add("log_reopened");
  log.add("stopped");
  const auto begin = log.lines.begin();
  const Lines first(begin, begin + 11), second(begin + 11, begin + 21), third(begin + 21, log.lines.end());
  CHECK(follow({first, second, third}).break_count == 0);
  CHECK(follow({first, second, third, {}}).break_count == 0);
  const AuditFindings later = follow({second, third});  // older files need not be given
  CHECK(later.break_count == 0);
  CHECK(later.first_seq == 11);
  const AuditFindings found = follow({first, third});
  const AuditBreak& broken = only_break(found);
  CHECK(broken.kind == AuditBreakKind::file_missing);
  CHECK(broken.place.file == 1);
  CHECK(broken.place.line == 1);
  CHECK(broken.meaning.ends_with("10 records are missing (seq 11 to 20)"));
}

TEST_CASE("a second chain is not the continuation of the first") {
  const AuditLog log = busy_log();
  AuditLog other;
  other.add("policy_loaded", R"("enabled":false)");
  other.session(9);
  const AuditFindings found = follow({log.lines, other.lines});
  const AuditBreak& broken = only_break(found);
  CHECK(broken.kind == AuditBreakKind::new_chain);
  CHECK(broken.place.file == 1);
  CHECK(found.last_seq == 3);
}

TEST_CASE("records that a failing disk may have lost are written again to the next file") {
  AuditLog log = busy_log();
  log.add("log_reopened");
  const auto begin = log.lines.begin();
  const AuditFindings found = follow({Lines(begin, begin + 10), Lines(begin + 7, log.lines.end())});
  CHECK(found.break_count == 0);
  CHECK(found.written_again == 3);
  CHECK(found.records == 12);
  Lines again(begin + 7, log.lines.end());
  replace(again[1], "2026", "2027");
  CHECK(only_break(follow({Lines(begin, begin + 10), again})).kind == AuditBreakKind::line_repeated);
}

TEST_CASE("a torn line is legal when the next record tells of it, with its size") {
  AuditLog log;
  log.add("policy_loaded");
  log.torn("{\"seq\":1,\"pre");
  log.add("policy_loaded", R"("torn_bytes":14)");
  CHECK(follow({log.lines}).break_count == 0);
  CHECK(follow({log.lines}).torn_lines == 1);

  AuditLog twice;
  twice.add("policy_loaded");
  twice.torn("{\"seq\":1,\"pre");
  twice.torn("{\"seq\"");
  twice.add("policy_loaded", R"("torn_bytes":21)");
  CHECK(follow({twice.lines}).break_count == 0);

  Lines lines = log.lines;
  lines.erase(lines.begin() + 1);
  AuditFindings found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::torn_line_missing);
  CHECK(only_break(found).place.line == 2);

  lines = log.lines;
  lines[1].insert(0, "x");
  found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::torn_line_unsaid);
  CHECK(only_break(found).place.line == 2);
  CHECK(only_break(found).expected == "`torn_bytes` 15 in the next record");
  CHECK(only_break(found).found == "14");

  lines = busy_log().lines;
  lines[5] = "{\"seq\":5,~";  // a record made to look torn
  found = follow({lines});
  CHECK(only_break(found).kind == AuditBreakKind::torn_line_unsaid);
  CHECK(only_break(found).seq == 5);
}

TEST_CASE("an unended line at the end is a crash or a write under way; within the chain it is nothing") {
  const AuditLog log = busy_log();
  AuditChain chain({});
  chain.begin_file();
  for (std::size_t i = 0; i < 5; ++i) chain.line(log.lines[i], true, i + 1, 0);
  chain.line("{\"seq\":5,", false, 6, 0);
  SUBCASE("the end") {
    const AuditFindings found = chain.finish();
    CHECK(found.break_count == 0);
    CHECK(found.unfinished_bytes == 9);
  }
  SUBCASE("a full disk and a rotation: the record is whole in the next file") {
    chain.begin_file();
    for (std::size_t i = 5; i < 11; ++i) chain.line(log.lines[i], true, i - 4, 0);
    const AuditFindings found = chain.finish();
    CHECK(found.break_count == 0);
    CHECK(found.unfinished_bytes == 0);
  }
  SUBCASE("a torn line that was closed, and no record after it") {
    chain.begin_file();
    chain.line("{\"seq\":5,~", true, 6, 0);
    CHECK(chain.finish().unfinished_bytes == 10);
  }
}

TEST_CASE("a log cut at the end is found by what is known from elsewhere, and by nothing else") {
  const AuditLog log = busy_log();
  const AuditAnchor anchor{parse_digest(log.digests[10]), 10};
  CHECK(follow({log.lines}, anchor).break_count == 0);
  CHECK(follow({log.lines}, anchor).head_seq == 10);
  CHECK(follow({log.lines}, {parse_digest(log.digests[4]), 7}).head_seq == 4);
  Lines cut = log.lines;
  cut.pop_back();
  CHECK(follow({cut}).break_count == 0);
  const AuditFindings found = follow({cut}, anchor);
  REQUIRE(found.breaks.size() == 2);
  CHECK(found.breaks[0].kind == AuditBreakKind::tail_truncated);
  CHECK(found.breaks[0].expected == "seq 10 or later at the end");
  CHECK(found.breaks[0].found == "seq 9");
  CHECK(found.breaks[0].place.line == 10);
  CHECK(found.breaks[1].kind == AuditBreakKind::head_missing);
  CHECK(found.breaks[1].expected == log.digests[10]);
}

TEST_CASE("no record at all proves nothing") {
  CHECK(only_break(follow({{}})).kind == AuditBreakKind::no_records);
  CHECK(follow({{}}, {Digest{}, 0}).break_count == 3);
}

TEST_CASE("nothing starts, warns or ends without a request, nor ends twice") {
  const auto id = [](int n) { return R"("request_id":")" + AuditLog::id(n) + '"'; };
  const auto kind_of = [&](const char* event, int of, const std::string& more = "") {
    AuditLog log;
    log.add("policy_loaded");
    log.session(1);
    log.add("request", id(2));
    log.add(event, id(of) + more);
    const AuditFindings found = follow({log.lines});
    return found.breaks.empty() ? std::string("none") : kAuditBreakNames[std::size_t(found.breaks[0].kind)];
  };
  for (const char* event : {"started", "warning", "exit"}) {
    CHECK(kind_of(event, 2) == "none");
    CHECK(kind_of(event, 3) == "no_request");
    CHECK(kind_of(event, 1) == "ended_twice");
  }
  CHECK(kind_of("denial", 3, R"(,"reason":"argv_not_allowed")") == "none");
  CHECK(kind_of("denial", 2, R"(,"reason":"spawn_failed")") == "none");
  CHECK(kind_of("denial", 3, R"(,"reason":"spawn_failed")") == "no_request");
  CHECK(kind_of("denial", 3, R"(,"argv":[",\"reason\":\"spawn_failed\""],"reason":"cwd_not_allowed")") == "none");
  CHECK(kind_of("malformed", 3) == "none");

  AuditLog restarted;
  restarted.add("policy_loaded");
  restarted.add("request", id(1));
  restarted.add("policy_loaded");
  restarted.add("exit", id(1) + R"(,"code":0)");
  CHECK(only_break(follow({restarted.lines})).kind == AuditBreakKind::no_request);
  const Lines tail(restarted.lines.begin() + 3, restarted.lines.end());  // its request may be in an older file
  CHECK(follow({tail}).break_count == 0);

  AuditLog shared;  // two requesters may choose the same id
  shared.add("policy_loaded");
  for (int i = 0; i < 2; ++i) shared.add("request", id(1));
  for (int i = 0; i < 2; ++i) shared.add("exit", id(1));
  CHECK(follow({shared.lines}).break_count == 0);
}

TEST_CASE("any single byte changed, and any line removed but the last, is found") {
  const AuditLog log = busy_log();
  for (std::size_t i = 0; i < log.lines.size(); ++i) {
    const bool last = i + 1 == log.lines.size();
    const AuditAnchor anchor{parse_digest(log.digests.back()), std::nullopt};
    for (std::size_t k = 0; k < log.lines[i].size(); ++k) {
      Lines lines = log.lines;
      lines[i][k] = static_cast<char>(lines[i][k] ^ 1);
      if (follow({lines}, last ? anchor : AuditAnchor{}).break_count == 0) FAIL("line " << i << ", byte " << k);
    }
    Lines lines = log.lines;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    const AuditFindings found = follow({lines}, last ? anchor : AuditAnchor{});
    if (i > 0) CHECK(found.break_count == 1);  // without the first it is a log whose older files were not given
  }
}

TEST_CASE("a log that is broken everywhere is reported up to a bound") {
  AuditLog log;
  log.add("policy_loaded");
  for (int i = 0; i < 400; ++i) log.add("stopped");
  for (std::string& line : log.lines) replace(line, "2026", "2027");
  const AuditFindings found = follow({log.lines});
  CHECK(found.breaks.size() == kMaxAuditBreaks);
  CHECK(found.break_count >= 200);
}

}  // namespace
}  // namespace x0x::policyc
