// One damaged table per fault. Each is signed afresh, so only the reader stands between it and a decision.
#include "enforcer/blob_view.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "policyc/emit.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;
using namespace x0x::blob;

namespace {

policyc::Policy sample() {
  policyc::Policy source =
      policy({entry(1, 2, {{"get", "<INT>"}, {"get", "/a<URL_PATH>"}, {"get", "/a/x"}, {"get", "7", "z"}, {"ls"}}),
              entry(3, 4, {{"/bin/id"}, {"ls"}})});
  source.name = "sample";
  source.audience = {"a", "b"};
  source.entries[0].description = "first";
  source.entries[0].commands[4].env = {{"A", "1"}, {"B", "2"}};
  source.entries[0].commands[4].writable = {"/srv"};
  source.entries[0].commands[4].allow = {{{"ls"}, {}}};
  source.entries[1].commands[0].exe = "/bin/id";
  return source;
}

// Where the sections of a payload lie, computed apart from the reader.
struct Layout {
  explicit Layout(const ByteVector& p) : payload(p) {
    entries = kHeaderBytes;
    rules = entries + field(kHeaderEntryCount) * kEntryBytes;
    options = rules + field(kHeaderRuleCount) * kRuleBytes;
    items = options + field(kHeaderOptionCount) * kOptionsBytes;
    positions = items + field(kHeaderItemCount) * kTextRefBytes;
    slots = positions + field(kHeaderPositionCount) * kPositionBytes;
    labels = slots + field(kHeaderSlotCount) * kSlotBytes;
    texts = labels + field(kHeaderLabelBytes);
  }
  std::size_t field(std::size_t offset) const { return load_u32(payload.data() + offset); }
  std::size_t position(std::size_t i, std::size_t f) const { return positions + i * kPositionBytes + f; }
  std::size_t label(std::size_t i) const { return labels + field(position(i, kPositionLabel)); }
  // The first position with this kind and label.
  std::size_t find(std::uint8_t kind, const std::string& text) const {
    for (std::size_t i = 0; i < field(kHeaderPositionCount); ++i) {
      const auto* at = payload.data() + label(i);
      if (payload[position(i, kPositionKind)] == kind &&
          std::string(at, at + field(position(i, kPositionLabelBytes))) == text)
        return i;
    }
    FAIL("no such position");
    return 0;
  }
  const ByteVector& payload;
  std::size_t entries, rules, options, items, positions, slots, labels, texts;
};

void put32(ByteVector& payload, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) payload[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// The fault after one change.
Fault after(const std::function<void(ByteVector&, const Layout&)>& change, const policyc::Policy& source = sample()) {
  const ByteVector original = policyc::emit(source);
  ByteVector payload = original;
  change(payload, Layout(original));
  REQUIRE(payload != original);
  return open_signed(payload).fault;
}

Fault after_header32(std::size_t field, std::uint32_t value) {
  return after([&](ByteVector& p, const Layout&) { put32(p, field, value); });
}

Fault after_byte(std::size_t Layout::*section, std::size_t offset, std::uint8_t value) {
  return after([&](ByteVector& p, const Layout& l) { p[l.*section + offset] = value; });
}

Fault after_position(std::uint8_t kind, const std::string& label, std::size_t field, std::uint8_t value) {
  return after([&](ByteVector& p, const Layout& l) { p[l.position(l.find(kind, label), field)] = value; });
}

}  // namespace

TEST_CASE("the sample itself opens and reads back") {
  const OpenTable table = open_policy(sample());
  REQUIRE(table.fault == Fault::none);
  CHECK(std::string(table.view.name().c_str()) == "sample");
  CHECK(table.view.entry_count() == 2);
  CHECK(table.view.rule_count() == 7);
  CHECK(table.view.audience_count() == 2);
  CHECK(std::string(table.view.item(1).c_str()) == "b");
  CHECK(std::string(table.view.options(5).exe.c_str()) == "/bin/id");
  CHECK_FALSE(table.view.options(0).present);
  CHECK_FALSE(table.view.default_cwd().present());
  CHECK(table.view.caps(0).duration_secs == 300);
}

TEST_CASE("caps are the smallest of policy, entry and command") {
  policyc::Policy source = policy({entry(1, 1, {{"a"}, {"b"}})});
  source.exec.max_duration_secs = 100;
  source.exec.warn_duration_secs = 50;
  source.exec.warn_stdout_bytes = 0;
  source.entries[0].max_duration_secs = 20;
  source.entries[0].commands[1].max_duration_secs = 500;
  source.entries[0].commands[1].max_stdout_bytes = 5;
  source.entries[0].commands[1].max_stderr_bytes = 6;
  const OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);
  CHECK(table.view.caps(0).duration_secs == 20);
  CHECK(table.view.caps(0).warn_duration_secs == 20);
  CHECK(table.view.caps(1).duration_secs == 20);
  CHECK(table.view.caps(1).stdout_bytes == 5);
  CHECK(table.view.caps(1).warn_stdout_bytes == 0);
  CHECK(table.view.caps(1).stderr_bytes == 6);
  CHECK(table.view.caps(1).warn_stderr_bytes == 6);
}

TEST_CASE("magic, purpose, version") {
  CHECK(after([](ByteVector& p, const Layout&) { p[0] = 'X'; }) == Fault::bad_magic);
  CHECK(after([](ByteVector& p, const Layout&) { p[kHeaderPurpose] = 'E'; }) == Fault::wrong_purpose);
  CHECK(after_header32(kHeaderFormatVersion, 2) == Fault::unknown_version);
  CHECK(after_header32(kHeaderFormatVersion, 0) == Fault::unknown_version);
}

TEST_CASE("truncated and trailing_bytes, and counts too large for the file") {
  CHECK(open_signed({}).fault == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.resize(kHeaderBytes - 1); }) == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.pop_back(); }) == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.push_back(0); }) == Fault::trailing_bytes);
  for (const std::size_t field : {kHeaderEntryCount, kHeaderRuleCount, kHeaderOptionCount, kHeaderItemCount,
                                  kHeaderPositionCount, kHeaderSlotCount, kHeaderLabelBytes, kHeaderTextBytes})
    CHECK(after_header32(field, 0xffffffff) == Fault::truncated);
}

TEST_CASE("bad_count: the parts contradict each other") {
  CHECK(after([](ByteVector& p, const Layout& l) {  // twice as many slots as it should have
          put32(p, kHeaderSlotCount, static_cast<std::uint32_t>(l.field(kHeaderSlotCount) * 2));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.labels), l.field(kHeaderSlotCount) * kSlotBytes, 0);
        }) == Fault::bad_count);
  const policyc::Policy empty = policy({});
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // no root
              put32(p, kHeaderPositionCount, 0);
              p.erase(p.begin() + static_cast<std::ptrdiff_t>(l.positions),
                      p.begin() + static_cast<std::ptrdiff_t>(l.positions + kPositionBytes));
            },
            empty) == Fault::bad_count);
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // an entry without rules
              put32(p, kHeaderEntryCount, 1);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.entries), kEntryBytes, 0);
            },
            empty) == Fault::bad_count);
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // an entry and a rule, but no position for them
              put32(p, kHeaderEntryCount, 1);
              put32(p, kHeaderRuleCount, 1);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.entries), kEntryBytes + kRuleBytes, 0);
            },
            empty) == Fault::bad_count);
}

TEST_CASE("bad_flags and bad_padding") {
  CHECK(after_header32(kHeaderFlags, 3) == Fault::bad_flags);
  CHECK(after_byte(&Layout::options, kOptionsFlags, 1 << 5) == Fault::bad_flags);
  CHECK(after_header32(kHeaderZero, 1) == Fault::bad_padding);
  CHECK(after_position(kKindLiteral, "ls", kPositionZero, 1) == Fault::bad_padding);
  CHECK(after_byte(&Layout::options, kOptionsSha256, 1) == Fault::bad_padding);
}

TEST_CASE("bad_window and bad_cap") {
  policyc::Policy source = sample();
  source.not_before = 5;
  source.expires = 5;
  CHECK(open_policy(source).fault == Fault::bad_window);
  source.expires = 6;
  CHECK(open_policy(source).fault == Fault::none);
  for (const std::size_t field : {kHeaderMaxStdoutBytes, kHeaderMaxStderrBytes, kHeaderMaxStdinBytes,
                                  kHeaderMaxDurationSecs, kHeaderMaxConcurrentPerAgent, kHeaderMaxConcurrentTotal})
    CHECK(after_header32(field, 0) == Fault::bad_cap);
  CHECK(after_header32(kHeaderWarnStdoutBytes, 0xffffffff) == Fault::bad_cap);
  CHECK(after_header32(kHeaderWarnStderrBytes, 0xffffffff) == Fault::bad_cap);
  CHECK(after_header32(kHeaderWarnDurationSecs, 301) == Fault::bad_cap);
  CHECK(after_header32(kHeaderMaxConcurrentPerAgent, 33) == Fault::bad_cap);
}

TEST_CASE("bad_text: out of order, unterminated, not UTF-8, left over") {
  CHECK(after_header32(kHeaderName, 1) == Fault::bad_text);
  CHECK(after_header32(kHeaderName, 0xfffffffe) == Fault::bad_text);
  CHECK(after_header32(kHeaderName + 4, 0xffffffff) == Fault::bad_text);
  CHECK(after_header32(kHeaderName + 4, 5) == Fault::bad_text);        // ends before its NUL
  CHECK(after_header32(kHeaderDefaultCwd + 4, 1) == Fault::bad_text);  // absent, but with a length
  CHECK(after_byte(&Layout::texts, 0, 0xff) == Fault::bad_text);       // not UTF-8
  CHECK(after_byte(&Layout::texts, 2, 0) == Fault::bad_text);          // a NUL inside
  CHECK(after([](ByteVector& p, const Layout& l) {                     // one text more than is referred to
          put32(p, kHeaderTextBytes, static_cast<std::uint32_t>(l.field(kHeaderTextBytes) + 1));
          p.push_back(0);
        }) == Fault::bad_text);
}

TEST_CASE("bad_path: relative, empty or missing") {
  policyc::Policy source = sample();
  source.exec.audit_log_path = "exec.log";
  CHECK(open_policy(source).fault == Fault::bad_path);
  source.exec.audit_log_path = "";
  CHECK(open_policy(source).fault == Fault::bad_path);
  source = sample();
  source.exec.default_cwd = "srv";
  CHECK(open_policy(source).fault == Fault::bad_path);
  source = sample();
  source.entries[0].commands[0].cwd = "tmp";
  CHECK(open_policy(source).fault == Fault::bad_path);
  source = sample();
  source.entries[0].commands[0].exe = "";
  CHECK(open_policy(source).fault == Fault::bad_path);
  CHECK(after([](ByteVector& p, const Layout& l) {  // no audit log at all
          const auto first = static_cast<std::ptrdiff_t>(l.texts + 7), length = std::ptrdiff_t{22};
          p.erase(p.begin() + first, p.begin() + first + length);
          put32(p, kHeaderTextBytes, static_cast<std::uint32_t>(l.field(kHeaderTextBytes) - 22));
          put32(p, kHeaderAuditLogPath, kNone);
          put32(p, kHeaderAuditLogPath + 4, 0);
        }) == Fault::bad_path);
}

TEST_CASE("bad_item: lists out of order, doubled, malformed, miscounted") {
  policyc::Policy source = sample();
  source.audience = {"a", ""};
  CHECK(open_policy(source).fault == Fault::bad_item);
  source = sample();
  source.entries[0].commands[4].writable = {"srv"};
  CHECK(open_policy(source).fault == Fault::bad_item);
  source = sample();
  source.entries[0].commands[4].env = {{"", "x"}};
  CHECK(open_policy(source).fault == Fault::bad_item);
  const auto item_text = [](const Layout& l, std::size_t i) { return l.texts + l.field(l.items + i * kTextRefBytes); };
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 'b'; }) == Fault::bad_item);      // b, b
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 'c'; }) == Fault::bad_item);      // c, b
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 0; }) == Fault::bad_item);        // NUL
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 2) + 1] = 'x'; }) == Fault::bad_item);  // no =
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 2) + 2] = 0; }) == Fault::bad_item);
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 4) + 1] = 0; }) == Fault::bad_item);
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 5) + 2] = 'x'; }) == Fault::bad_item);  // no NUL
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.items, kNone); }) == Fault::bad_text);
  CHECK(after_header32(kHeaderAudienceCount, 1) == Fault::bad_item);
  CHECK(after_header32(kHeaderAudienceCount, 3) == Fault::bad_item);
  CHECK(after_header32(kHeaderAudienceCount, 0xffffffff) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, kOptionsEnvCount, 1) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, kOptionsEnvCount + 3, 0xff) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, kOptionsFirstItem, 0) == Fault::bad_item);
}

TEST_CASE("an audience larger than all items cannot be wrapped round by a huge list") {
  CHECK(after([](ByteVector& p, const Layout& l) {
          const auto items = static_cast<std::uint32_t>(l.field(kHeaderItemCount));
          put32(p, kHeaderAudienceCount, items + 5);
          put32(p, l.options + kOptionsFirstItem, items + 5);
          put32(p, l.options + kOptionsEnvCount,
                0xfffffffb - static_cast<std::uint32_t>(l.field(l.options + kOptionsWritableCount) +
                                                        l.field(l.options + kOptionsAllowCount)));
        }) == Fault::bad_item);
}

TEST_CASE("bad_entry and bad_rule: entries and rules that point to the wrong place") {
  CHECK(after_byte(&Layout::entries, kEntryPair, 0) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, kEntryPair + 3, 0xff) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, kEntryFirstRule, 1) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, kEntryBytes + kEntryFirstRule, 0) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, kEntryBytes + kEntryFirstRule, 7) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, kEntryBytes + kEntryFirstRule, 4) == Fault::bad_rule);
  CHECK(after_byte(&Layout::entries, kEntryBytes + kEntryFirstRule, 6) == Fault::bad_rule);
  CHECK(after_byte(&Layout::entries, kEntryPair, 2) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, kRuleEntry, 1) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, kRuleOptions, 0) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, 4 * kRuleBytes + kRuleOptions, 1) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.rules + 4 * kRuleBytes + kRuleOptions, kNone); }) ==
        Fault::bad_rule);
  policyc::Policy twice = policy({entry(1, 1, {{"a"}, {"a"}, {"b"}})});
  const auto second = [](std::uint32_t position) {
    return [=](ByteVector& p, const Layout& l) { put32(p, l.rules + kRuleBytes + kRulePosition, position); };
  };
  CHECK(after(second(3), twice) == Fault::bad_rule);  // b, whose first rule is a later one
  CHECK(after(second(1), twice) == Fault::bad_rule);  // the pair itself
  CHECK(after(second(0), twice) == Fault::bad_rule);
  CHECK(after(second(4), twice) == Fault::bad_rule);
  CHECK(after(second(0xffffffff), twice) == Fault::bad_rule);
}

TEST_CASE("bad_options: a record that says nothing, or a list that is not announced") {
  policyc::Policy source = policy({entry(1, 1, {{"a"}})});
  source.entries[0].commands[0].max_stdout_bytes = 1;
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.options + kOptionsMaxStdoutBytes, 0); }, source) ==
        Fault::bad_options);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.options + kOptionsFlags, 0); }) == Fault::bad_options);
}

TEST_CASE("bad_position: kinds, pairs and rules in the wrong place") {
  CHECK(after_position(kKindRoot, "", kPositionParent, 1) == Fault::bad_position);
  CHECK(after_position(kKindRoot, "", kPositionRule, 0) == Fault::bad_position);
  CHECK(after_position(kKindRoot, "", kPositionPair, 1) == Fault::bad_position);
  CHECK(after_position(kKindRoot, "", kPositionKind, 1) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "get", kPositionKind, 5) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "get", kPositionKind, kKindPair) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "get", kPositionPair, 2) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "z", kPositionRule, 2) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "z", kPositionRule + 3, 0x7f) == Fault::bad_position);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.position(1, kPositionRule), 0); }) ==
        Fault::bad_position);
  CHECK(after_position(kKindLiteral, "get", kPositionTemplates, 1) == Fault::bad_position);
  CHECK(after_position(kKindLiteral, "z", kPositionTemplates, 1) == Fault::bad_position);
  CHECK(after([](ByteVector& p, const Layout& l) {  // a leaf no rule ends at
          put32(p, l.position(l.find(kKindLiteral, "/a/x"), kPositionRule), kNone);
        }) == Fault::bad_position);
}

TEST_CASE("bad_label: offsets, terminators and contents of tokens") {
  CHECK(after_position(kKindLiteral, "get", kPositionLabel, 0) == Fault::bad_label);
  CHECK(after_position(kKindLiteral, "get", kPositionLabelBytes, 2) == Fault::bad_label);
  CHECK(after_position(kKindLiteral, "get", kPositionLabelBytes + 3, 0xff) == Fault::bad_label);
  const auto replaced = [](std::uint8_t kind, const std::string& from, std::size_t at, char to) {
    return after(
        [&](ByteVector& p, const Layout& l) { p[l.label(l.find(kind, from)) + at] = static_cast<std::uint8_t>(to); });
  };
  CHECK(replaced(kKindLiteral, "get", 1, ';') == Fault::bad_label);
  CHECK(replaced(kKindLiteral, "get", 1, '\0') == Fault::bad_label);
  CHECK(replaced(kKindLiteral, "get", 1, '/') == Fault::bad_label);  // argv[0] relative
  CHECK(replaced(kKindLiteral, "get", 3, 'x') == Fault::bad_label);  // the NUL is gone
  CHECK(replaced(kKindLiteral, "z", 0, '\xff') == Fault::bad_label);
  CHECK(replaced(kKindUrlPath, "/a/", 2, 'b') == Fault::bad_label);  // no slash at its end
  CHECK(open_policy(policy({entry(1, 1, {{""}})})).fault == Fault::bad_label);
  CHECK(open_policy(policy({entry(1, 1, {{"<INT>"}})})).fault == Fault::bad_label);
  CHECK(open_policy(policy({entry(1, 1, {{"/x<URL_PATH>"}})})).fault == Fault::bad_label);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes + 1, 'x')}})})).fault == Fault::bad_label);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes, 'x')}})})).fault == Fault::none);
  CHECK(after([](ByteVector& p, const Layout& l) {  // one label more than there are positions
          put32(p, kHeaderLabelBytes, static_cast<std::uint32_t>(l.field(kHeaderLabelBytes) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.texts), 0);
        }) == Fault::bad_label);
  CHECK(after([](ByteVector& p, const Layout& l) {  // an <INT> with a label
          const std::size_t at = l.find(kKindInt, "");
          put32(p, l.position(at, kPositionLabelBytes), 1);
          for (std::size_t i = at + 1; i < l.field(kHeaderPositionCount); ++i)
            put32(p, l.position(i, kPositionLabel),
                  static_cast<std::uint32_t>(l.field(l.position(i, kPositionLabel)) + 1));
          put32(p, kHeaderLabelBytes, static_cast<std::uint32_t>(l.field(kHeaderLabelBytes) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.label(at)), 'x');
        }) == Fault::bad_label);
}

TEST_CASE("bad_order: siblings unsorted or doubled, parents out of order") {
  const policyc::Policy source = policy({entry(1, 1, {{"a"}, {"b"}, {"c", "d"}})});
  const auto rename = [](const std::string& from, char to) {
    return
        [=](ByteVector& p, const Layout& l) { p[l.label(l.find(kKindLiteral, from))] = static_cast<std::uint8_t>(to); };
  };
  CHECK(after(rename("b", 'a'), source) == Fault::bad_order);
  CHECK(after(rename("b", 'A'), source) == Fault::bad_order);
  const auto reparent = [](std::uint32_t parent) {
    return [=](ByteVector& p, const Layout& l) {
      put32(p, l.position(l.find(kKindLiteral, "d"), kPositionParent), parent);
    };
  };
  CHECK(after(reparent(0), source) == Fault::bad_order);
  CHECK(after(reparent(5), source) == Fault::bad_order);   // itself
  CHECK(after(reparent(99), source) == Fault::bad_order);  // nowhere
  CHECK(after_position(kKindInt, "", kPositionKind, kKindLiteral) == Fault::bad_order);
}

TEST_CASE("bad_width: the bound on live positions") {
  CHECK(after_position(kKindLiteral, "get", kPositionWidth, 1) == Fault::bad_width);
  CHECK(after_position(kKindLiteral, "get", kPositionWidth, 3) == Fault::bad_width);
  CHECK(after_position(kKindLiteral, "z", kPositionWidth, 0) == Fault::bad_width);
  CHECK(after_position(kKindLiteral, "z", kPositionWidth, 2) == Fault::bad_width);
}

TEST_CASE("bad_slot: an index that is not the one its positions make") {
  const auto change_slot = [](std::uint32_t from_nth, std::uint32_t value) {
    return after([&](ByteVector& p, const Layout& l) {
      for (std::size_t at = l.slots, nth = 0; at < l.labels; at += kSlotBytes)
        if (l.field(at) != 0 && nth++ == from_nth) put32(p, at, value);
    });
  };
  CHECK(change_slot(0, 0) == Fault::bad_slot);
  CHECK(change_slot(1, 0xffffffff) == Fault::bad_slot);
  CHECK(after([](ByteVector& p, const Layout& l) {  // one position in two slots
          for (std::size_t at = l.slots; at < l.labels; at += kSlotBytes)
            if (l.field(at) == 0) return put32(p, at, 3);
        }) == Fault::bad_slot);
}

TEST_CASE("the hash of the index is the one the format document gives") {
  // docs/format.md shows these values; they are on disk.
  CHECK(hash_label(bytes("")) == hash_label({}));
  CHECK(hash_label(bytes("a")) != hash_label(bytes(std::string("a\0", 2))));
  for (const std::uint32_t mask : {0u, 1u, 255u}) CHECK(home_slot(7, kKindInt, hash_label({}), mask) <= mask);
}
