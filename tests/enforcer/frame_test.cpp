#include "enforcer/frame.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::wire;
using Buffer = std::vector<std::uint8_t>;

namespace {

// bincode, written out a second time so that both sides cannot share a mistake
struct Writer {
  Buffer out;
  Writer& number(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    return *this;
  }
  Writer& raw(const std::string& text) {
    out.insert(out.end(), text.begin(), text.end());
    return *this;
  }
  Writer& string(const std::string& text) { return number(text.size(), 8).raw(text); }
};

Writer head(std::uint32_t tag) {
  Writer w;
  w.number(1, 1).raw(std::string(32, '\xaa')).raw(std::string(32, '\xbb')).raw(std::string("x0x-exec-v1\0", 12));
  return w.number(tag, 4).raw("0123456789abcdef");
}

Buffer request(const std::vector<std::string>& argv, const char* stdin_data = nullptr, std::uint32_t timeout = 7,
               const char* cwd = nullptr) {
  Writer w = head(0).number(argv.size(), 8);
  for (const std::string& token : argv) w.string(token);
  stdin_data == nullptr ? w.number(0, 1) : w.number(1, 1).string(stdin_data);
  w.number(timeout, 4);
  cwd == nullptr ? w.number(0, 1) : w.number(1, 1).string(cwd);
  return w.out;
}

bool decodes(Buffer bytes) {
  static Message message;
  return decode(bytes, message);
}

std::string str(Bytes b) { return {b.begin(), b.end()}; }

}  // namespace

TEST_CASE("a request is taken apart, its argv NUL-terminated in place") {
  static Message m;
  Buffer bytes = request({"echo", "", "h\xc3\xa1llo"}, "in\0put", 1500, "/tmp");
  REQUIRE(decode(bytes, m));
  CHECK(m.kind == kKindExec);
  CHECK(m.tag == Tag::request);
  CHECK(str(m.address.agent().bytes) == std::string(32, '\xaa'));
  CHECK(str(m.address.machine().bytes) == std::string(32, '\xbb'));
  CHECK(std::memcmp(m.address.request_id, "0123456789abcdef", 16) == 0);
  REQUIRE(m.argc == 3);
  CHECK(str(m.argv_block) == std::string("echo\0\0h\xc3\xa1llo\0", 13));
  CHECK(str(m.stdin_data) == "in");
  CHECK(m.timeout_ms == 1500);
  CHECK(m.cwd_present);

  Bytes rest = m.argv_block;
  CHECK(str(next_token(rest)) == "echo");
  CHECK(next_token(rest).empty());
  CHECK(str(next_token(rest)) == "h\xc3\xa1llo");
  CHECK(rest.empty());
}

TEST_CASE("stdin and cwd may be absent, argv may be empty") {
  static Message m;
  Buffer bytes = request({});
  REQUIRE(decode(bytes, m));
  CHECK(m.argc == 0);
  CHECK(m.argv_block.empty());
  CHECK(m.stdin_data.empty());
  CHECK_FALSE(m.cwd_present);
}

TEST_CASE("renewals and cancels carry nothing but their address") {
  static Message m;
  for (const std::uint32_t tag : {1u, 7u}) {
    Buffer bytes = head(tag).out;
    REQUIRE(decode(bytes, m));
    CHECK(m.has_address);
    CHECK(static_cast<std::uint32_t>(m.tag) == tag);
    CHECK_FALSE(decodes(head(tag).number(0, 1).out));
  }
}

TEST_CASE("nothing of a message is left in the next") {
  Message m;
  Buffer first = request({"echo", "1"}, "input", 1500, "/tmp"), second = head(7).out, third = {kKindSessions};
  REQUIRE(decode(first, m));
  REQUIRE(decode(second, m));
  CHECK(m.argc == 0);
  CHECK(m.argv_block.empty());
  CHECK(m.stdin_data.empty());
  CHECK(m.timeout_ms == 0);
  CHECK_FALSE(m.cwd_present);
  REQUIRE(decode(third, m));
  CHECK_FALSE(m.has_address);
}

TEST_CASE("questions are one byte") {
  CHECK(decodes({2}));
  CHECK(decodes({3}));
  CHECK_FALSE(decodes({2, 0}));
  CHECK_FALSE(decodes({0}));
  CHECK_FALSE(decodes({4}));
  CHECK_FALSE(decodes({}));
}

TEST_CASE("every truncation and every trailing byte of a request is malformed") {
  const Buffer whole = request({"echo", "42"}, "input", 7, "/x");
  REQUIRE(decodes(whole));
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK_FALSE(decodes(Buffer(whole.begin(), whole.begin() + static_cast<long>(n))));
  Buffer longer = whole;
  longer.push_back(0);
  CHECK_FALSE(decodes(longer));
}

TEST_CASE("frames in the wrong direction, unknown tags and kinds are malformed, and their id is kept") {
  static Message m;
  for (const std::uint32_t tag : {2u, 3u, 4u, 5u, 6u, 8u, 0xffffffffu}) {
    Buffer bytes = head(tag).out;
    CHECK_FALSE(decode(bytes, m));
    CHECK(m.has_address);
  }
  Buffer other = head(1).out;
  other[70] ^= 1;  // the prefix
  CHECK_FALSE(decode(other, m));
  CHECK_FALSE(m.has_address);
}

TEST_CASE("bool and option bytes above 1 and invalid UTF-8 are malformed") {
  Buffer bytes = request({"a"}, nullptr, 7);
  bytes[bytes.size() - 6] = 2;  // stdin's option byte
  CHECK_FALSE(decodes(bytes));
  bytes = request({"a"}, nullptr, 7);
  bytes.back() = 2;  // cwd's
  CHECK_FALSE(decodes(bytes));
  CHECK_FALSE(decodes(request({"a\xff"})));
  CHECK_FALSE(decodes(request({"a"}, nullptr, 7, "\xc0\x80")));
}

TEST_CASE("huge lengths and counts cannot run away") {
  for (const std::uint64_t huge : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{1000}}) {
    CHECK_FALSE(decodes(head(0).number(huge, 8).string("a").out));
    CHECK_FALSE(decodes(head(0).number(1, 8).number(huge, 8).raw("a").out));
    CHECK_FALSE(decodes(head(0).number(0, 8).number(1, 1).number(huge, 8).raw("a").out));
  }
}

TEST_CASE("an argv longer than any rule is denied for what is in it") {
  const auto table = test::open_policy(test::policy({test::entry(0xaa, 0xbb, {{"x"}})}));
  static Message m;
  std::vector<std::string> argv(3000, "x");
  Buffer bytes = request(argv);
  REQUIRE(decode(bytes, m));
  CHECK(m.argc == 3000);
  CHECK(m.argv_block.size() == 6000);
  CHECK(decide(table.view, m.request(), 1).reason == DenialReason::argv_not_allowed);
  argv[2500] = "a;b";
  bytes = request(argv);
  REQUIRE(decode(bytes, m));
  CHECK(decide(table.view, m.request(), 1).reason == DenialReason::shell_metachar_in_argv);
}

TEST_CASE("a NUL inside a token does not become the end of one") {
  const auto table = test::open_policy(test::policy({test::entry(0xaa, 0xbb, {{"a", "b"}})}));
  static Message m;
  Buffer bytes = request({std::string("a\0b", 3)});
  REQUIRE(decode(bytes, m));
  CHECK(m.argc == 1);
  CHECK(str(m.argv_block) == std::string("a\xff"
                                         "b\0",
                                         4));
  CHECK(decide(table.view, m.request(), 1).reason == DenialReason::shell_metachar_in_argv);
  bytes = request({"a", "b"});
  REQUIRE(decode(bytes, m));
  CHECK(decide(table.view, m.request(), 1).decision == Decision::allow);
}

TEST_CASE("frames to a client are x0x's own bytes") {
  Address to;
  std::memset(to.pair, 0xaa, 32);
  std::memset(to.pair + 32, 0xbb, 32);
  std::memcpy(to.request_id, "0123456789abcdef", 16);
  const auto bytes = [](Frame frame, std::size_t tail = 0) {
    const Bytes b = frame.finish(tail);
    return Buffer(b.begin(), b.end());
  };
  const auto expected = [](Writer body, std::size_t tail = 0) {
    Writer w;
    w.number(body.out.size() + tail, 4);
    w.out.insert(w.out.end(), body.out.begin(), body.out.end());
    return w.out;
  };
  CHECK(bytes(Frame(to, Tag::started).number(4711, 4)) == expected(head(2).number(4711, 4)));
  CHECK(bytes(Frame(to, Tag::stdout_chunk).number(3, 4).number(5, 8), 5) ==
        expected(head(3).number(3, 4).number(5, 8), 5));
  CHECK(bytes(warning_frame(to, 7)) == expected(head(5).number(7, 4).string(kWarningMessages[7])));
  CHECK(bytes(exit_frame(to, {0, -1, 12, 3, 4, true, -1})) ==
        expected(
            head(6).number(1, 1).number(0, 4).number(0, 1).number(12, 8).number(3, 8).number(4, 8).number(1, 1).number(
                0, 1)));
  CHECK(bytes(exit_frame(to, {-1, 9, 0, 0, 0, false, -1})) == expected(head(6)
                                                                           .number(0, 1)
                                                                           .number(1, 1)
                                                                           .number(9, 4)
                                                                           .number(0, 24 / 3)
                                                                           .number(0, 8)
                                                                           .number(0, 8)
                                                                           .number(0, 1)
                                                                           .number(0, 1)));
  CHECK(bytes(exit_frame(to, {-1, -1, 0, 0, 0, false, 11})) ==
        expected(head(6).number(0, 2).number(0, 8).number(0, 8).number(0, 8).number(0, 1).number(1, 1).number(11, 4)));
  CHECK(bytes(exit_frame(to, {-1, -1, 0, 0, 0, false, 0})) ==
        expected(head(6).number(0, 2).number(0, 8).number(0, 8).number(0, 8).number(0, 1).number(1, 1).number(0, 4)));
  CHECK(bytes(Frame(std::uint8_t{2}), 10) == Buffer{11, 0, 0, 0, 2});
}
