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
    entries = templates + field(offsetof(Header, template_count)) * sizeof(Template);
    rules = entries + field(offsetof(Header, entry_count)) * sizeof(Entry);
    options = rules + field(offsetof(Header, rule_count)) * sizeof(Rule);
    items = options + field(offsetof(Header, option_count)) * sizeof(Options);
    slots = items + field(offsetof(Header, item_count)) * sizeof(TextRef);
    pieces = slots + field(offsetof(Header, slot_count)) * sizeof(blob::Slot);
    texts = pieces + field(offsetof(Header, piece_bytes));
  }
  std::size_t field(std::size_t offset) const { return load_u32(payload.data() + offset); }
  std::size_t rule(std::size_t i, std::size_t f) const { return rules + i * sizeof(Rule) + f; }
  std::size_t shape(std::size_t i, std::size_t f) const { return shapes + i * sizeof(Shape) + f; }
  std::size_t piece(std::size_t i) const { return pieces + field(rule(i, offsetof(Rule, pieces))); }
  const ByteVector& payload;
  std::size_t pairs, shapes, templates, entries, rules, options, items, slots, pieces, texts;
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
  CHECK(open_policy(source).fault == Fault::bad_shape);
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
        offsetof(Header, item_count), offsetof(Header, slot_count), offsetof(Header, piece_bytes),
        offsetof(Header, text_bytes)})
    CHECK(after_header32(field, 0xffffffff) == Fault::truncated);
}

TEST_CASE("bad_count: the parts contradict each other") {
  CHECK(after([](ByteVector& p, const Layout& l) {  // twice as many slots as it should have
          put32(p, offsetof(Header, slot_count), static_cast<std::uint32_t>(l.field(offsetof(Header, slot_count)) * 2));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.pieces),
                   l.field(offsetof(Header, slot_count)) * sizeof(blob::Slot), 0);
        }) == Fault::bad_count);
  const policyc::Policy empty = policy({});
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // no slot at all
              put32(p, offsetof(Header, slot_count), 0);
              p.erase(p.begin() + static_cast<std::ptrdiff_t>(l.slots),
                      p.begin() + static_cast<std::ptrdiff_t>(l.pieces));
            },
            empty) == Fault::bad_count);
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // an entry without rules
              put32(p, offsetof(Header, entry_count), 1);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.entries), sizeof(Entry), 0);
            },
            empty) == Fault::bad_count);
  CHECK(after(
            [](ByteVector& p, const Layout& l) {  // a rule without an entry
              put32(p, offsetof(Header, rule_count), 1);
              put32(p, offsetof(Header, slot_count), 2);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.slots), sizeof(blob::Slot), 0);
              p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.rules), sizeof(Rule), 0);
            },
            empty) == Fault::bad_count);
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

TEST_CASE("bad_text: out of order, unterminated, not UTF-8, left over") {
  CHECK(after_header32(offsetof(Header, name), 1) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name), 0xfffffffe) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name) + 4, 0xffffffff) == Fault::bad_text);
  CHECK(after_header32(offsetof(Header, name) + 4, 5) == Fault::bad_text);         // ends before its NUL
  CHECK(after_header32(offsetof(Header, default_cwd) + 4, 1) == Fault::bad_text);  // absent, but with a length
  CHECK(after_byte(&Layout::texts, 0, 0xff) == Fault::bad_text);                   // not UTF-8
  CHECK(after_byte(&Layout::texts, 2, 0) == Fault::bad_text);                      // a NUL inside
  CHECK(after([](ByteVector& p, const Layout& l) {                                 // one text more than is referred to
          put32(p, offsetof(Header, text_bytes), static_cast<std::uint32_t>(l.field(offsetof(Header, text_bytes)) + 1));
          p.push_back(0);
        }) == Fault::bad_text);
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
  CHECK(after([](ByteVector& p, const Layout& l) {  // one item more than the lists hold
          put32(p, offsetof(Header, item_count), static_cast<std::uint32_t>(l.field(offsetof(Header, item_count)) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.slots), sizeof(TextRef), 0xff);
        }) == Fault::bad_item);
}

TEST_CASE("bad_entry and bad_rule: entries and rules that point to the wrong place") {
  CHECK(after_byte(&Layout::entries, offsetof(Entry, pair), 1) == Fault::bad_entry);  // before pair 0 has been named
  CHECK(after_byte(&Layout::entries, offsetof(Entry, pair) + 3, 0xff) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, offsetof(Entry, first_rule), 1) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, first_rule), 0) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, first_rule), 7) == Fault::bad_entry);
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, first_rule), 4) == Fault::bad_rule);
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, first_rule), 6) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, offsetof(Rule, entry), 1) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, offsetof(Rule, options), 0) == Fault::bad_rule);
  CHECK(after_byte(&Layout::rules, 4 * sizeof(Rule) + offsetof(Rule, options), 1) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.rule(4, offsetof(Rule, options)), kNone); }) ==
        Fault::bad_rule);
  // A shape of another pair, no shape at all, and a shape that a later rule is said to use first.
  const policyc::Policy source = policy({entry(1, 1, {{"a"}, {"a"}, {"b", "c"}}), entry(2, 2, {{"a"}})});
  const auto second = [](std::uint32_t shape) {
    return [=](ByteVector& p, const Layout& l) { put32(p, l.rule(1, offsetof(Rule, shape)), shape); };
  };
  CHECK(after(second(2), source) == Fault::bad_rule);
  CHECK(after(second(0xffffffff), source) == Fault::bad_rule);
  CHECK(after(second(1), source) == Fault::bad_rule);
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.shape(0, offsetof(Shape, first_rule)), 1); }, source) ==
        Fault::bad_rule);
  // The next pair's shape, with a rule that is there already: nothing else would give it away.
  const policyc::Policy lent = policy({entry(1, 1, {{"a"}}), entry(2, 2, {{"b"}}), entry(1, 1, {{"b"}})});
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.rule(2, offsetof(Rule, shape)), 1); }, lent) ==
        Fault::bad_rule);
}

TEST_CASE("bad_pair: pairs nobody names, and shapes that are not theirs") {
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, pair), 0) ==
        Fault::bad_pair);  // the second is left over
  CHECK(after_byte(&Layout::entries, sizeof(Entry) + offsetof(Entry, pair), 2) == Fault::bad_entry);
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, first_shape), 1) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, shape_count), 0) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, offsetof(Pair, shape_count) + 3, 0xff) == Fault::bad_pair);
  CHECK(after_byte(&Layout::pairs, sizeof(Pair) + offsetof(Pair, shape_count), 2) == Fault::bad_pair);
}

TEST_CASE("bad_shape: argc, templates and the rule that uses it first") {
  // The sample's first pair: ls | get /a/x, get <INT>, get /a<URL_PATH> | get 7 z
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, argc), 0) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, argc) + 1, 0x80) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, first_rule), 0) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, first_rule), 7) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, first_template), 1) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, template_count), 3) == Fault::bad_shape);
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, template_count) + 3, 0xff) == Fault::bad_shape);
  CHECK(after_byte(&Layout::templates, offsetof(Template, token), 0) == Fault::bad_shape);  // argv[0]
  CHECK(after_byte(&Layout::templates, offsetof(Template, token), 2) == Fault::bad_shape);  // after the last token
  CHECK(after([](ByteVector& p, const Layout& l) {                                          // a shape that no pair has
          put32(p, offsetof(Header, shape_count),
                static_cast<std::uint32_t>(l.field(offsetof(Header, shape_count)) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.templates), sizeof(Shape), 0);
        }) == Fault::bad_shape);
  CHECK(after([](ByteVector& p, const Layout& l) {  // a template that no shape has
          put32(p, offsetof(Header, template_count),
                static_cast<std::uint32_t>(l.field(offsetof(Header, template_count)) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.entries), sizeof(Template), 0);
        }) == Fault::bad_shape);
  policyc::Policy one = policy({entry(1, 1, {{"a"}})});  // after its only rule stand options that look like a rule
  one.entries[0].commands[0].cwd = "/";
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.shape(0, offsetof(Shape, first_rule)), 1); }, one) ==
        Fault::bad_shape);
  const policyc::Policy two = policy({entry(1, 1, {{"a", "<INT>", "<INT>"}})});
  CHECK(after([](ByteVector& p, const Layout& l) { put32(p, l.templates + offsetof(Template, token), 2); }, two) ==
        Fault::bad_shape);  // one token twice
}

TEST_CASE("bad_order: shapes of a pair unsorted or doubled") {
  CHECK(after_byte(&Layout::shapes, offsetof(Shape, argc), 3) == Fault::bad_order);
  CHECK(after_byte(&Layout::shapes, 4 * sizeof(Shape) + offsetof(Shape, argc), 1) == Fault::bad_order);
  const policyc::Policy urls = policy({entry(1, 1, {{"a", "/<URL_PATH>"}, {"a", "/b<URL_PATH>"}})});
  const auto second = [](std::uint32_t bytes) {
    return [=](ByteVector& p, const Layout& l) {
      put32(p, l.templates + sizeof(Template) + offsetof(Template, piece_bytes), bytes);
    };
  };
  CHECK(after(second(2), urls) == Fault::bad_order);  // equal
  CHECK(after(second(1), urls) == Fault::bad_order);
  const policyc::Policy prefix = policy({entry(1, 1, {{"a", "<INT>", "b"}, {"a", "<INT>", "<INT>"}}),
                                         entry(2, 2, {{"a", "b", "c", "<INT>"}})});  // whose template is not compared
  CHECK(after(  // the shape with one template more comes first
            [](ByteVector& p, const Layout& l) {
              put32(p, l.shape(0, offsetof(Shape, first_rule)), 1);
              put32(p, l.shape(1, offsetof(Shape, first_rule)), 0);
              put32(p, l.rule(0, offsetof(Rule, shape)), 1);
              put32(p, l.rule(1, offsetof(Rule, shape)), 0);
              put32(p, l.shape(0, offsetof(Shape, template_count)), 2);
              put32(p, l.shape(1, offsetof(Shape, template_count)), 1);
              put32(p, l.shape(1, offsetof(Shape, first_template)), 2);
              put32(p, l.templates + sizeof(Template) + offsetof(Template, token), 2);
              put32(p, l.templates + 2 * sizeof(Template) + offsetof(Template, token), 1);
            },
            prefix) == Fault::bad_order);
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
  CHECK(after_byte(&Layout::rules, offsetof(Rule, pieces), 1) == Fault::bad_piece);
  CHECK(after_byte(&Layout::rules, sizeof(Rule) + offsetof(Rule, pieces), 3) == Fault::bad_piece);
  CHECK(after_byte(&Layout::rules, sizeof(Rule) + offsetof(Rule, pieces), 6) == Fault::bad_piece);
  CHECK(after_byte(&Layout::rules, sizeof(Rule) + offsetof(Rule, pieces) + 3, 0xff) == Fault::bad_piece);
  CHECK(after_byte(&Layout::rules, 2 * sizeof(Rule) + offsetof(Rule, pieces), 0) == Fault::bad_piece);
  const auto replaced = [](std::size_t rule, std::size_t at, char to) {
    return after([&](ByteVector& p, const Layout& l) { p[l.piece(rule) + at] = static_cast<std::uint8_t>(to); });
  };
  CHECK(replaced(0, 1, ';') == Fault::bad_piece);
  CHECK(replaced(0, 1, '\0') == Fault::bad_piece);
  CHECK(replaced(0, 1, '/') == Fault::bad_piece);  // argv[0] relative
  CHECK(replaced(0, 3, 'x') == Fault::bad_piece);  // a NUL is gone
  CHECK(replaced(0, 4, 'x') == Fault::bad_piece);  // the last NUL is gone
  CHECK(replaced(3, 6, '\xff') == Fault::bad_piece);
  CHECK(replaced(1, 6, 'b') == Fault::bad_piece);  // /a<URL_PATH>: no slash at its end
  CHECK(open_policy(policy({entry(1, 1, {{""}})})).fault == Fault::bad_piece);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes + 1, 'x')}})})).fault == Fault::bad_piece);
  CHECK(open_policy(policy({entry(1, 1, {{"a", std::string(kMaxTokenBytes, 'x')}})})).fault == Fault::none);
  CHECK(open_policy(policy({entry(1, 1, {{"<INT>"}})})).fault == Fault::bad_shape);
  CHECK(open_policy(policy({entry(1, 1, {{"/x<URL_PATH>"}})})).fault == Fault::bad_shape);
  CHECK(after([](ByteVector& p, const Layout& l) {  // one byte more than the rules use
          put32(p, offsetof(Header, piece_bytes),
                static_cast<std::uint32_t>(l.field(offsetof(Header, piece_bytes)) + 1));
          p.insert(p.begin() + static_cast<std::ptrdiff_t>(l.texts), 0);
        }) == Fault::bad_piece);
  // A template's piece is as long as its shape says: `get <INT>` with a byte, `get /a<URL_PATH>` with one more or
  // fewer.
  CHECK(after_byte(&Layout::templates, offsetof(Template, piece_bytes), 1) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes), 2) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes), 4) == Fault::bad_piece);
  CHECK(after_byte(&Layout::templates, sizeof(Template) + offsetof(Template, piece_bytes) + 3, 0xff) ==
        Fault::bad_piece);
}

TEST_CASE("bad_slot: an index that is not the one its pairs and rules make") {
  const auto change_slot = [](std::uint32_t nth, std::size_t field, std::uint32_t value) {
    return after([&](ByteVector& p, const Layout& l) {
      std::uint32_t seen = 0;
      for (std::size_t at = l.slots; at < l.pieces; at += sizeof(blob::Slot))
        if (l.field(at + offsetof(blob::Slot, number)) != 0 && seen++ == nth) put32(p, at + field, value);
    });
  };
  for (std::uint32_t nth = 0; nth < 9; ++nth) {  // 2 pairs, 7 rules
    CHECK(change_slot(nth, offsetof(blob::Slot, number), 0) == Fault::bad_slot);
    CHECK(change_slot(nth, offsetof(blob::Slot, number), 10) == Fault::bad_slot);
    CHECK(change_slot(nth, offsetof(blob::Slot, number), 0xffffffff) == Fault::bad_slot);
    CHECK(change_slot(nth, offsetof(blob::Slot, tag), 5) == Fault::bad_slot);
  }
  const auto fill_empty = [](std::size_t field, std::uint32_t value) {
    return after([&](ByteVector& p, const Layout& l) {
      for (std::size_t at = l.slots; at < l.pieces; at += sizeof(blob::Slot))
        if (l.field(at + offsetof(blob::Slot, number)) == 0) return put32(p, at + field, value);
    });
  };
  CHECK(fill_empty(offsetof(blob::Slot, number), 3) == Fault::bad_slot);  // one rule in two slots
  CHECK(fill_empty(offsetof(blob::Slot, tag), 1) == Fault::bad_slot);     // a tag without a number
  CHECK(after([](ByteVector& p, const Layout& l) {                        // one pair twice
          std::copy_n(p.begin() + static_cast<std::ptrdiff_t>(l.pairs), kPairBytes,
                      p.begin() + static_cast<std::ptrdiff_t>(l.pairs + sizeof(Pair)));
        }) == Fault::bad_slot);
}

TEST_CASE("bad_slot: of equal rules only the first is indexed, and neighbours stand in order") {
  // All in one slot's neighbourhood: a table this small has few homes.
  std::vector<std::vector<std::string>> argvs;
  for (char c = 'a'; c <= 'p'; ++c) argvs.push_back({std::string(1, c)});
  argvs.push_back({"a"});
  const policyc::Policy source = policy({entry(1, 1, argvs)});
  CHECK(open_policy(source).fault == Fault::none);
  CHECK(after(  // the equal rule takes the place of the first
            [](ByteVector& p, const Layout& l) {
              for (std::size_t at = l.slots; at < l.pieces; at += sizeof(blob::Slot))
                if (l.field(at + offsetof(blob::Slot, number)) == 2) put32(p, at + offsetof(blob::Slot, number), 18);
            },
            source) == Fault::bad_slot);
  std::size_t swapped = 0;
  const ByteVector original = policyc::emit(source);
  const Layout l(original);
  for (std::size_t at = l.slots; at + sizeof(blob::Slot) < l.pieces; at += sizeof(blob::Slot)) {
    if (l.field(at + offsetof(blob::Slot, number)) == 0 ||
        l.field(at + sizeof(blob::Slot) + offsetof(blob::Slot, number)) == 0)
      continue;
    ByteVector payload = original;
    std::swap_ranges(payload.begin() + static_cast<std::ptrdiff_t>(at),
                     payload.begin() + static_cast<std::ptrdiff_t>(at + sizeof(blob::Slot)),
                     payload.begin() + static_cast<std::ptrdiff_t>(at + sizeof(blob::Slot)));
    CHECK(open_signed(payload).fault == Fault::bad_slot);
    ++swapped;
  }
  CHECK(swapped > 0);
}

TEST_CASE("bad_slot: 256 taken slots in a row, also round the end of the index") {
  // Rules picked for where their slots are. The last one is written elsewhere first, and then moved to where it makes
  // the row one longer: the compiler would not write such a table.
  constexpr std::uint32_t kRules = 300, kSlots = 1024;
  for (const std::uint32_t start : {100u, kSlots - 100u}) {
    std::vector<std::vector<std::string>> argvs;
    std::string spare;
    for (int i = 0; argvs.size() < kMaxProbes || spare.empty(); ++i) {
      const std::string name = "r" + std::to_string(1'000'000 + i);
      const auto home = static_cast<std::uint32_t>(hash_bytes(0, bytes(name + '\0'))) % kSlots;
      const std::uint32_t from_start = (home + kSlots - start) % kSlots;
      if (from_start < 60 && argvs.size() < kMaxProbes - 1)
        argvs.push_back({name});
      else if (from_start < 60 && argvs.size() == kMaxProbes)
        spare = name;
      else if (from_start > 500 && from_start < 600 && argvs.size() == kMaxProbes - 1)
        argvs.push_back({name});
    }
    const policyc::Policy source = policy({entry(1, 1, argvs)});
    REQUIRE(source.entries[0].commands.size() < kRules);
    const ByteVector payload = policyc::emit(source);
    const Layout l(payload);
    REQUIRE(l.field(offsetof(Header, slot_count)) == kSlots);
    const auto slot = [&](std::uint32_t at) { return l.slots + at % kSlots * sizeof(blob::Slot); };
    std::uint32_t row = start;  // from a taken slot to the next empty one
    while (l.field(slot(row) + offsetof(blob::Slot, number)) == 0) ++row;
    const std::uint32_t first = row;
    while (l.field(slot(row) + offsetof(blob::Slot, number)) != 0) ++row;
    CHECK(open_signed(payload).fault == Fault::none);
    ByteVector moved = payload;
    std::copy(spare.begin(), spare.end(), moved.begin() + static_cast<std::ptrdiff_t>(l.piece(kMaxProbes - 1)));
    for (std::uint32_t at = 0; at < kSlots; ++at)
      if (l.field(slot(at) + offsetof(blob::Slot, number)) == kMaxProbes + 1)
        put32(moved, slot(at), 0), put32(moved, slot(at) + 4, 0);
    put32(moved, slot(row), static_cast<std::uint32_t>(hash_bytes(0, bytes(spare + '\0')) >> 32));
    put32(moved, slot(row) + 4, kMaxProbes + 1);
    CHECK(open_signed(moved).fault == (row + 1 - first < kMaxProbes ? Fault::none : Fault::bad_slot));
    CHECK(row + 1 - first == kMaxProbes);
  }
}

TEST_CASE("the hash of the index is the one the format document gives") {
  // docs/format.md shows these values; they are on disk.
  CHECK(hash_bytes(0, bytes("ls")) == 0xfe985ee8b642bac4);
  CHECK(hash_bytes(0, bytes("systemctl")) == 0xb72c7690fef1683f);
  CHECK(hash_bytes(kHashPair, ByteVector(64, 0xab)) == 0xbc795f8f6d04f6ac);
}
