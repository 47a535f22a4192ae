// One damaged table per fault. Each is signed afresh, so only the reader stands between it and a decision.
#include "enforcer/blob_view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
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
    pairs = kHeaderBytes;
    shapes = pairs + field(offsetof(Header, pair_count)) * sizeof(Pair);
    templates = shapes + field(offsetof(Header, shape_count)) * sizeof(Shape);
    patterns = templates + field(offsetof(Header, template_count)) * sizeof(Template);
    entries = patterns + field(offsetof(Header, pattern_count)) * sizeof(Pattern);
    rules = entries + field(offsetof(Header, entry_count)) * sizeof(Entry);
    options = rules + field(offsetof(Header, rule_count)) * sizeof(Rule);
    items = options + field(offsetof(Header, option_count)) * sizeof(Options);
    pieces = items + field(offsetof(Header, item_count)) * sizeof(TextRef);
    texts = pieces + field(offsetof(Header, piece_bytes));
  }
  std::size_t field(std::size_t offset) const { return load_u32(payload.data() + offset); }
  std::size_t rule(std::size_t i, std::size_t f) const { return rules + i * sizeof(Rule) + f; }
  std::size_t shape(std::size_t i, std::size_t f) const { return shapes + i * sizeof(Shape) + f; }
  std::size_t pattern(std::size_t i, std::size_t f) const { return patterns + i * sizeof(Pattern) + f; }
  std::size_t pattern_of(std::size_t i) const { return field(rule(i, offsetof(Rule, pattern))); }
  std::size_t piece(std::size_t i) const { return pieces + field(pattern(pattern_of(i), offsetof(Pattern, pieces))); }
  const ByteVector& payload;
  std::size_t pairs, shapes, templates, patterns, entries, rules, options, items, pieces, texts;
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

}  // namespace

TEST_CASE("the sample itself opens and reads back") {
  const OpenTable table = open_policy(sample());
  REQUIRE(table.fault == Fault::none);
  CHECK(std::string(table.view.text(table.view.header().name).c_str()) == "sample");
  CHECK(table.view.header().entry_count == 2);
  CHECK(table.view.header().rule_count == 7);
  CHECK(table.view.header().audience_count == 2);
  CHECK(std::string(table.view.item(1).c_str()) == "b");
  CHECK(std::string(table.view.text(table.view.options(5).exe).c_str()) == "/bin/id");
  CHECK(table.view.rule(0).options == kNone);
  CHECK_FALSE(table.view.text(table.view.header().default_cwd).present());
  CHECK(table.view.caps(0).max_duration_secs == 300);
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
  CHECK(table.view.caps(0).max_duration_secs == 20);
  CHECK(table.view.caps(0).warn_duration_secs == 20);
  CHECK(table.view.caps(1).max_duration_secs == 20);
  CHECK(table.view.caps(1).max_stdout_bytes == 5);
  CHECK(table.view.caps(1).warn_stdout_bytes == 0);
  CHECK(table.view.caps(1).max_stderr_bytes == 6);
  CHECK(table.view.caps(1).warn_stderr_bytes == 6);
  source.exec.warn_stdout_bytes = 7;
  CHECK(open_policy(source).view.caps(1).warn_stdout_bytes == 5);
}

TEST_CASE("what stands exactly at its limit is accepted") {
  policyc::Policy source = policy({entry(1, 1, {std::vector<std::string>(kMaxArgc, "x")})});
  source.exec.warn_stdout_bytes = source.exec.max_stdout_bytes;
  source.exec.warn_stderr_bytes = source.exec.max_stderr_bytes;
  source.exec.warn_duration_secs = source.exec.max_duration_secs;
  source.exec.max_concurrent_per_agent = source.exec.max_concurrent_total;
  const OpenTable table = open_policy(source);
  REQUIRE(table.fault == Fault::none);
  OwnedRequest request{id(1), id(1), std::vector<std::string>(kMaxArgc, "x")};
  CHECK(is_allow(test::decide(table.view, request).decision));
  request.argv.back() = "y";
  CHECK_FALSE(is_allow(test::decide(table.view, request).decision));
  request.argv.assign(kMaxArgc + 1, "x");
  CHECK_FALSE(is_allow(test::decide(table.view, request).decision));
  source.entries[0].commands[0] = command(request.argv);
  CHECK(open_policy(source).fault == Fault::bad_piece);
}

TEST_CASE("magic, purpose, version") {
  CHECK(after([](ByteVector& p, const Layout&) { p[0] = 'X'; }) == Fault::bad_magic);
  CHECK(after([](ByteVector& p, const Layout&) { p[offsetof(Header, purpose)] = 'E'; }) == Fault::wrong_purpose);
  CHECK(after_header32(offsetof(Header, format_version), 2) == Fault::unknown_version);
  CHECK(after_header32(offsetof(Header, format_version), 0) == Fault::unknown_version);
}

TEST_CASE("truncated and trailing_bytes, and counts too large for the file") {
  CHECK(open_signed({}).fault == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.resize(kHeaderBytes - 1); }) == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.pop_back(); }) == Fault::truncated);
  CHECK(after([](ByteVector& p, const Layout&) { p.push_back(0); }) == Fault::trailing_bytes);
  for (const std::size_t field :
       {offsetof(Header, pair_count), offsetof(Header, shape_count), offsetof(Header, template_count),
        offsetof(Header, entry_count), offsetof(Header, rule_count), offsetof(Header, option_count),
        offsetof(Header, item_count), offsetof(Header, pattern_count), offsetof(Header, piece_bytes),
        offsetof(Header, text_bytes)})
    CHECK(after_header32(field, 0xffffffff) == Fault::truncated);
}

TEST_CASE("bad_count: records, or bytes, that nothing refers to") {
  const auto added = [](std::size_t count, std::size_t Layout::*next_section, std::size_t size) {
    return after([&](ByteVector& p, const Layout& l) {
      put32(p, count, static_cast<std::uint32_t>(l.field(count) + 1));
      p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.*next_section), size, 0);
    });
  };
  CHECK(added(offsetof(Header, shape_count), &Layout::templates, sizeof(Shape)) == Fault::bad_count);
  CHECK(added(offsetof(Header, template_count), &Layout::patterns, sizeof(Template)) == Fault::bad_count);
  CHECK(added(offsetof(Header, pattern_count), &Layout::entries, sizeof(Pattern)) == Fault::bad_count);
  CHECK(added(offsetof(Header, entry_count), &Layout::rules, sizeof(Entry)) == Fault::bad_count);
  CHECK(added(offsetof(Header, option_count), &Layout::items, sizeof(Options)) == Fault::bad_count);
  CHECK(added(offsetof(Header, item_count), &Layout::pieces, sizeof(TextRef)) == Fault::bad_count);
  CHECK(added(offsetof(Header, piece_bytes), &Layout::texts, 1) == Fault::bad_count);
  CHECK(after([](ByteVector& p, const Layout& l) {
          put32(p, offsetof(Header, text_bytes), static_cast<std::uint32_t>(l.field(offsetof(Header, text_bytes)) + 1));
          p.push_back(0);
        }) == Fault::bad_count);
  // What has to refer to others finds none.
  CHECK(added(offsetof(Header, pair_count), &Layout::shapes, sizeof(Pair)) == Fault::bad_pair);
  CHECK(added(offsetof(Header, rule_count), &Layout::options, sizeof(Rule)) == Fault::bad_rule);
  const policyc::Policy empty = policy({});
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // a rule without an entry
              put32(p, offsetof(Header, rule_count), 1);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.rules), sizeof(Rule), 0xff);
            },
            empty) == Fault::bad_rule);
  // A pattern that no rule has: two rules share the other one.
  const policyc::Policy two = policy({entry(1, 1, {{"a"}, {"b"}})});
  CHECK(after(
            [](ByteVector& p, const Layout& l) {
              put32(p, l.rule(1, offsetof(Rule, pattern)), static_cast<std::uint32_t>(l.pattern_of(0)));
            },
            two) == Fault::bad_count);
}

TEST_CASE("bad_flags and bad_padding") {
  CHECK(after_header32(offsetof(Header, flags), 3) == Fault::bad_flags);
  CHECK(after_byte(&Layout::options, offsetof(Options, flags), 1 << 5) == Fault::bad_flags);
  CHECK(after_byte(&Layout::options, offsetof(Options, sha256), 1) == Fault::bad_padding);
}

TEST_CASE("bad_window and bad_cap") {
  policyc::Policy source = sample();
  source.not_before = 5;
  source.expires = 5;
  CHECK(open_policy(source).fault == Fault::bad_window);
  source.expires = 6;
  CHECK(open_policy(source).fault == Fault::none);
  for (const std::size_t field : {offsetof(Header, caps.max_stdout_bytes), offsetof(Header, caps.max_stderr_bytes),
                                  offsetof(Header, caps.max_stdin_bytes), offsetof(Header, caps.max_duration_secs),
                                  offsetof(Header, max_concurrent_per_agent), offsetof(Header, max_concurrent_total)})
    CHECK(after_header32(field, 0) == Fault::bad_cap);
  CHECK(after_header32(offsetof(Header, caps.warn_stdout_bytes), 0xffffffff) == Fault::bad_cap);
  CHECK(after_header32(offsetof(Header, caps.warn_stderr_bytes), 0xffffffff) == Fault::bad_cap);
  CHECK(after_header32(offsetof(Header, caps.warn_duration_secs), 301) == Fault::bad_cap);
  CHECK(after_header32(offsetof(Header, max_concurrent_per_agent), 33) == Fault::bad_cap);
  const std::size_t caps[][2] = {{offsetof(Caps, max_stdout_bytes), offsetof(Caps, warn_stdout_bytes)},
                                 {offsetof(Caps, max_stderr_bytes), offsetof(Caps, warn_stderr_bytes)},
                                 {offsetof(Caps, max_duration_secs), offsetof(Caps, warn_duration_secs)}};
  for (const auto& cap : caps)
    CHECK(after([&](ByteVector& p, const Layout&) {  // nothing is allowed, and nothing is warned of
            for (const std::size_t field : cap) put32(p, offsetof(Header, caps) + field, 0);
          }) == Fault::bad_cap);
}

TEST_CASE("bad_text: out of order, unterminated, not UTF-8") {
  CHECK(after_header32(offsetof(Header, name), 1) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name), 0xfffffffe) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name) + 4, 0xffffffff) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name) + 4, 5) == Fault::bad_text);         // ends before its NUL
  CHECK(after_header32(offsetof(Header, default_cwd) + 4, 1) == Fault::bad_text);  // absent, but with a length
  CHECK(after_byte(&Layout::texts, 0, 0xff) == Fault::bad_text);                   // not UTF-8
  CHECK(after_byte(&Layout::texts, 2, 0) == Fault::bad_text);                      // a NUL inside
}

TEST_CASE("bad_text: one that would go on beyond the file") {
  policyc::Policy source = policy({entry(1, 1, {{"a"}}), entry(2, 2, {{"a"}})});
  source.entries[0].description = source.entries[1].description = std::string(3000, 'x');
  CHECK(after(
            [](ByteVector& p, const Layout& l) {
              put32(p, l.entries + sizeof(Entry) + offsetof(Entry, description) + offsetof(TextRef, length), 5000);
            },
            source) == Fault::bad_text);
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
          put32(p, offsetof(Header, text_bytes),
                static_cast<std::uint32_t>(l.field(offsetof(Header, text_bytes)) - 22));
          put32(p, offsetof(Header, audit_log_path), kNone);
          put32(p, offsetof(Header, audit_log_path) + 4, 0);
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
  const auto item_text = [](const Layout& l, std::size_t i) {
    return l.texts + l.field(l.items + i * sizeof(TextRef));
  };
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 'b'; }) == Fault::bad_item);      // b, b
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 'c'; }) == Fault::bad_item);      // c, b
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 0)] = 0; }) == Fault::bad_item);        // NUL
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 2) + 1] = 'x'; }) == Fault::bad_item);  // no =
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 2) + 2] = 0; }) == Fault::bad_item);
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 4) + 1] = 0; }) == Fault::bad_item);
  CHECK(after([&](ByteVector& p, const Layout& l) { p[item_text(l, 5) + 2] = 'x'; }) == Fault::bad_item);  // no NUL
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.items, kNone); }) == Fault::bad_text);
  CHECK(after([](ByteVector& p, const Layout& l) {  // an item that is not there
          put32(p, l.items, kNone);
          put32(p, l.items + 4, 0);
        }) == Fault::bad_item);
  CHECK(after_header32(offsetof(Header, audience_count), 1) ==
        Fault::bad_text);  // the next text is not the second name's
  CHECK(after_header32(offsetof(Header, audience_count), 3) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, audience_count), 0xffffffff) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, offsetof(Options, env_count), 1) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, offsetof(Options, env_count) + 3, 0xff) == Fault::bad_item);
  CHECK(after_byte(&Layout::options, offsetof(Options, allow_count), 2) == Fault::bad_item);  // beyond the last
  CHECK(after_byte(&Layout::options, offsetof(Options, first_item), 0) == Fault::bad_item);
}

TEST_CASE("lists longer than all items cannot wrap round") {
  CHECK(after([](ByteVector& p, const Layout& l) {
          put32(p, offsetof(Header, audience_count),
                static_cast<std::uint32_t>(l.field(offsetof(Header, item_count)) + 5));
        }) == Fault::bad_item);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.options + offsetof(Options, env_count), 0xfffffffe); }) ==
        Fault::bad_item);
}

TEST_CASE("bad_entry and bad_rule: entries and rules that point to the wrong place") {
  CHECK(after_byte(&Layout::entries, offsetof(Entry, pair), 2) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, offsetof(Entry, pair) + 3, 0xff) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, offsetof(Entry, first_rule), 1) == Fault::bad_entry);
  for (const auto first_rule : std::initializer_list<std::uint8_t>{0, 4, 6, 7})
    CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, first_rule), first_rule) == Fault::bad_entry);
  for (const std::size_t entry_number : {0u, 1u})  // the other entry's pair
    CHECK(after([&](ByteVector& p, const Layout& l) {
            p[l.entries + entry_number * sizeof(Entry) + offsetof(Entry, pair)] ^= 1;
          }) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, offsetof(Rule, entry), 2) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, offsetof(Rule, entry), 1) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.rule(0, offsetof(Rule, entry)), kNone); }) ==
        Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, sizeof(Rule) + offsetof(Rule, entry), 1) == Fault::bad_entry);
  CHECK(after_byte(&Layout::rules, 6 * sizeof(Rule) + offsetof(Rule, entry), 0) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, offsetof(Rule, options), 0) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, 4 * sizeof(Rule) + offsetof(Rule, options), 1) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.rule(4, offsetof(Rule, options)), kNone); }) ==
        Fault::bad_rule);
  // A pattern of another pair, none at all, and one that a later rule is said to have first.
  const policyc::Policy source = policy({entry(1, 1, {{"a"}, {"a"}, {"b", "c"}}), entry(2, 2, {{"a"}})});
  const auto second = [](std::uint32_t like) {
    return [=](ByteVector& p, const Layout& l) {
      const auto pattern = like < 4 ? l.pattern_of(like) : like;
      put32(p, l.rule(1, offsetof(Rule, pattern)), static_cast<std::uint32_t>(pattern));
    };
  };
  CHECK(after(second(3), source) == Fault::bad_rule);
  CHECK(after(second(0xffffffff), source) == Fault::bad_rule);
  CHECK(after(second(2), source) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.pattern(l.pattern_of(0), offsetof(Pattern, rule)), 1); },
              source) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.pattern(l.pattern_of(2), offsetof(Pattern, rule)), 1); },
              source) == Fault::bad_count);  // so no rule that it names has it
  // Another pair's pattern, with a rule that is there already: nothing else would give it away.
  const policyc::Policy lent = policy({entry(1, 1, {{"a"}}), entry(2, 2, {{"b"}}), entry(1, 1, {{"a"}})});
  CHECK(after(
            [](ByteVector& p, const Layout& l) {
              put32(p, l.rule(2, offsetof(Rule, pattern)), static_cast<std::uint32_t>(l.pattern_of(1)));
            },
            lent) == Fault::bad_rule);
}

TEST_CASE("bad_pair: shapes that are not theirs") {
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, first_shape), 1) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, sizeof(Pair) + offsetof(Pair, first_shape), 0) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, shape_count), 0) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, shape_count) + 3, 0xff) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, sizeof(Pair) + offsetof(Pair, shape_count), 4) == Fault::bad_pair);
}

TEST_CASE("bad_shape: templates and patterns that are not theirs") {
  // The sample's shapes: /a/x, 7 z and ls | get <INT> | get /a<URL_PATH>; and the other pair's.
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, first_template), 1) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, template_count), 3) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, template_count) + 3, 0xff) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, first_pattern), 1) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, pattern_count), 0) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, pattern_count) + 3, 0xff) == Fault::bad_shape);
}

TEST_CASE("bad_order: shapes of a pair unsorted or doubled") {
  const policyc::Policy urls = policy({entry(1, 1, {{"a", "/<URL_PATH>"}, {"a", "/b<URL_PATH>"}})});
  CHECK(after(  // all of the first and the second change places
            [](ByteVector& p, const Layout& l) {
              const auto swap = [&](std::size_t at, std::size_t size) {
                std::swap_ranges(p.begin() + static_cast<std::ptrdiff_t>(at),
                                 p.begin() + static_cast<std::ptrdiff_t>(at + size),
                                 p.begin() + static_cast<std::ptrdiff_t>(at + size));
              };
              swap(l.templates, sizeof(Template));
              swap(l.patterns, sizeof(Pattern));
              const std::size_t size = 5;  // of the pieces that came first, `a //`
              std::rotate(p.begin() + static_cast<std::ptrdiff_t>(l.pieces),
                          p.begin() + static_cast<std::ptrdiff_t>(l.pieces + size),
                          p.begin() + static_cast<std::ptrdiff_t>(l.texts));
              put32(p, l.rule(0, offsetof(Rule, pattern)), 1);
              put32(p, l.rule(1, offsetof(Rule, pattern)), 0);
              put32(p, l.pattern(0, offsetof(Pattern, pieces)), 0);
              put32(p, l.pattern(1, offsetof(Pattern, pieces)), static_cast<std::uint32_t>(l.texts - l.pieces - size));
            },
            urls) == Fault::bad_order);
  const policyc::Policy same = policy({entry(1, 1, {{"a", "<INT>"}, {"b", "<INT>"}})});
  CHECK(after(  // one shape with two patterns is taken for two with one each
            [](ByteVector& p, const Layout& l) {
              put32(p, offsetof(Header, shape_count), 2);
              put32(p, offsetof(Header, template_count), 2);
              put32(p, l.pairs + offsetof(Pair, shape_count), 2);
              put32(p, l.shape(0, offsetof(Shape, pattern_count)), 1);
              put32(p, l.pattern(0, offsetof(Pattern, start)), 0);
              put32(p, l.pattern(1, offsetof(Pattern, start)), 0);
              const ByteVector second_template(p.begin() + static_cast<std::ptrdiff_t>(l.templates),
                                               p.begin() + static_cast<std::ptrdiff_t>(l.patterns));
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.patterns), second_template.begin(),
                       second_template.end());
              const std::uint32_t second_shape[] = {1, 1, 1, 1};
              for (std::size_t i = 0; i < 4; ++i)
                for (std::size_t byte = 0; byte < 4; ++byte)
                  p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.templates + 4 * i + byte),
                           static_cast<std::uint8_t>(second_shape[i] >> (8 * byte)));
            },
            same) == Fault::bad_order);
}

TEST_CASE("too_many_shapes: the bound on what a decision may try") {
  std::vector<std::vector<std::string>> argvs;
  for (std::size_t i = 0; i < kMaxShapes; ++i) argvs.push_back({"a", std::string(i, 'x') + "<URL_PATH>"});
  CHECK(open_policy(policy({entry(1, 1, argvs), entry(2, 2, argvs)})).fault == Fault::none);
  argvs.push_back({"a"});
  CHECK(open_policy(policy({entry(1, 1, argvs)})).fault == Fault::too_many_shapes);
}

TEST_CASE("bad_options: a record that says nothing, or a list that is not announced") {
  policyc::Policy source = policy({entry(1, 1, {{"a"}})});
  source.entries[0].commands[0].max_stdout_bytes = 1;
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.options + offsetof(Options, max_stdout_bytes), 0); },
              source) == Fault::bad_options);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.options + offsetof(Options, flags), 0); }) ==
        Fault::bad_options);
}

TEST_CASE("bad_piece: offsets, terminators and contents of tokens") {
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(after([&](ByteVector& p, const Layout& l) { p[l.pattern(i, offsetof(Pattern, pieces))] ^= 1; }) ==
          Fault::bad_piece);
    CHECK(after([&](ByteVector& p, const Layout& l) { p[l.pattern(i, offsetof(Pattern, pieces)) + 3] = 0xff; }) ==
          Fault::bad_piece);
    CHECK(after([&](ByteVector& p, const Layout& l) { --p[l.pattern(i, offsetof(Pattern, piece_bytes))]; }) ==
          Fault::bad_piece);
    CHECK(after([&](ByteVector& p, const Layout& l) { ++p[l.pattern(i, offsetof(Pattern, piece_bytes))]; }) ==
          Fault::bad_piece);
    CHECK(after([&](ByteVector& p, const Layout& l) { p[l.pattern(i, offsetof(Pattern, piece_bytes)) + 3] = 0xff; }) ==
          Fault::bad_piece);
  }
  const auto replaced = [](std::size_t rule, std::size_t at, char to) {
    return after([&](ByteVector& p, const Layout& l) { p[l.piece(rule) + at] = static_cast<std::uint8_t>(to); });
  };
  CHECK(replaced(0, 1, ';') == Fault::bad_piece);
  CHECK(replaced(4, 1, ';') == Fault::bad_piece);
  CHECK(replaced(0, 1, '/') == Fault::bad_piece);  // argv[0] relative
  CHECK(replaced(4, 1, '/') == Fault::bad_piece);
  CHECK(replaced(4, 0, '\0') == Fault::bad_piece);  // argv[0] empty
  CHECK(replaced(0, 3, 'x') == Fault::bad_piece);   // a NUL is gone
  CHECK(replaced(0, 4, 'x') == Fault::bad_piece);   // the last NUL is gone
  CHECK(replaced(3, 6, '\xff') == Fault::bad_piece);
  CHECK(replaced(4, 0, '\x80') == Fault::bad_piece);  // not UTF-8
  CHECK(replaced(1, 6, 'b') == Fault::bad_piece);     // /a<URL_PATH>: no slash at its end
  CHECK(replaced(1, 5, '\0') == Fault::bad_piece);    // …and too short
  CHECK(open_policy(policy({entry(1, 1, {{""}})})).fault == Fault::bad_piece);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes + 1, 'x')}})})).fault == Fault::bad_piece);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes, 'x')}})})).fault == Fault::none);
  CHECK(open_policy(policy({entry(1, 1, {{"<INT>"}})})).fault == Fault::bad_piece);
  CHECK(open_policy(policy({entry(1, 1, {{"/x<URL_PATH>"}})})).fault == Fault::bad_piece);
  // A template stands where its shape says, and its piece is as long: `get <INT>` with a byte, `get /a<URL_PATH>` with
  // one more or fewer.
  for (const auto after_it : std::initializer_list<std::uint8_t>{1, 2, 0xff})
    CHECK(after_byte(&Layout::templates, offsetof(Template, after), after_it) == Fault::bad_piece);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.templates + offsetof(Template, after), kNone); }) ==
        Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, offsetof(Template, piece_bytes), 1) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes), 2) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes), 4) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes) + 3, 0xff) ==
        Fault::bad_piece);
}

TEST_CASE("bad_slot: an index that is not the one its pairs and patterns make") {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto changed = [&](std::size_t field, std::uint32_t value) {
      return after([&](ByteVector& p, const Layout& l) { put32(p, l.pairs + i * sizeof(Pair) + field, value); });
    };
    CHECK(changed(offsetof(Pair, tag), 5) == Fault::bad_slot);
    CHECK(changed(offsetof(Pair, start), 2 + static_cast<std::uint32_t>(i)) == Fault::bad_slot);
    CHECK(changed(offsetof(Pair, start), kNone) == Fault::bad_slot);
    CHECK(changed(offsetof(Pair, key), 0x01020304) == Fault::bad_slot);  // another's key
  }
  for (std::size_t i = 0; i < 7; ++i) {
    const auto changed = [&](std::size_t field, std::uint32_t value) {
      return after([&](ByteVector& p, const Layout& l) { put32(p, l.pattern(i, field), value); });
    };
    CHECK(changed(offsetof(Pattern, tag), 5) == Fault::bad_slot);
    CHECK(changed(offsetof(Pattern, start), 9) == Fault::bad_slot);
    CHECK(changed(offsetof(Pattern, start), kNone) == Fault::bad_slot);
  }
  CHECK(after([](ByteVector& p, const Layout& l) { p[l.piece(4)] = 'm'; }) == Fault::bad_slot);  // `ls` becomes `ms`
  CHECK(after([](ByteVector& p, const Layout& l) {                                               // one pair twice
          std::copy_n(p.begin() + static_cast<std::ptrdiff_t>(l.pairs + offsetof(Pair, key)), kPairBytes,
                      p.begin() + static_cast<std::ptrdiff_t>(l.pairs + sizeof(Pair) + offsetof(Pair, key)));
          put32(p, l.pairs + sizeof(Pair), static_cast<std::uint32_t>(l.field(l.pairs)));
        }) == Fault::bad_slot);
}

TEST_CASE("bad_slot: the patterns of a shape are sorted, each there once, and every slot begins where it does") {
  std::vector<std::vector<std::string>> argvs;
  for (char c = 'a'; c <= 'p'; ++c) argvs.push_back({std::string(1, c)});
  argvs.push_back({"a"});
  const policyc::Policy source = policy({entry(1, 1, argvs)});
  const ByteVector original = policyc::emit(source);
  const Layout l(original);
  REQUIRE(open_signed(original).fault == Fault::none);
  REQUIRE(l.field(offsetof(Header, pattern_count)) == 16);  // of equal rules only the first has a pattern of its own
  CHECK(l.pattern_of(16) == l.pattern_of(0));
  for (std::size_t i = 0; i + 1 < 16; ++i) {
    ByteVector payload = original;  // two neighbours change places, with their rules
    for (const std::size_t field : {offsetof(Pattern, tag), offsetof(Pattern, rule)}) {
      const auto one = static_cast<std::uint32_t>(l.field(l.pattern(i, field)));
      put32(payload, l.pattern(i, field), static_cast<std::uint32_t>(l.field(l.pattern(i + 1, field))));
      put32(payload, l.pattern(i + 1, field), one);
    }
    std::swap(payload[l.pieces + 2 * i], payload[l.pieces + 2 * i + 2]);
    for (std::size_t rule = 0; rule < 17; ++rule) {
      const std::size_t number = l.pattern_of(rule);
      const std::size_t moved = number == i ? i + 1 : number == i + 1 ? i : number;
      put32(payload, l.rule(rule, offsetof(Rule, pattern)), static_cast<std::uint32_t>(moved));
    }
    CHECK(open_signed(payload).fault == Fault::bad_slot);
    for (const int change : {-1, 1}) {
      payload = original;
      const auto start = static_cast<int>(l.field(l.pattern(i, offsetof(Pattern, start))));
      put32(payload, l.pattern(i, offsetof(Pattern, start)), static_cast<std::uint32_t>(start + change));
      CHECK(open_signed(payload).fault == Fault::bad_slot);
    }
  }
}

TEST_CASE("bad_slot: more patterns in one slot than a lookup may try") {
  // Names picked for where their tags lie: `crowded` of them in the first slot of a shape with 1,000, then the others.
  for (const std::uint32_t crowded : {kMaxProbes, kMaxProbes + 1}) {
    constexpr std::uint64_t kPatterns = 1000;
    std::vector<std::vector<std::string>> first, others;
    for (std::uint32_t i = 0; first.size() < crowded || others.size() < kPatterns - crowded; ++i) {
      const std::string name = "r" + std::to_string(1'000'000 + i);
      const bool is_first = (hash_bytes(0, bytes(name + '\0')) >> 32) * kPatterns >> 32 == 0;
      if (is_first && first.size() < crowded) first.push_back({name});
      if (!is_first && others.size() < kPatterns - crowded) others.push_back({name});
    }
    first.insert(first.end(), others.begin(), others.end());
    const OpenTable table = open_policy(policy({entry(1, 1, first)}));
    CHECK(table.fault == (crowded == kMaxProbes ? Fault::none : Fault::bad_slot));
    if (table.fault != Fault::none) continue;
    for (std::uint32_t i = 0; i < kPatterns; ++i)
      REQUIRE(test::decide(table.view, OwnedRequest{id(1), id(1), first[i]}).rule == i);
  }
}

TEST_CASE("the hash of the index is the one the format document gives") {
  // docs/format.md shows these values; they are on disk.
  CHECK(hash_bytes(0, bytes("ls")) == 0x8c23987eea3ec694);
  CHECK(hash_bytes(0, bytes("systemctl")) == 0x935204462eb20655);
  CHECK(hash_pair(ByteVector(64, 0xab).data()) == 0xf8c89bfcee9d9905);
}
