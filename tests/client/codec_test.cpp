// client/codec.cpp: the bytes of what we send, and every way an answer can be wrong.
#include "client/codec.hpp"

#include <doctest/doctest.h>

#include "tests/client/peer.hpp"

using namespace x0x;
using namespace x0x::client;
using namespace x0x::client::test;

namespace {

std::string hex(const Message& message) { return to_hex(message); }
std::string repeat(std::string_view piece, int times) {
  std::string all;
  while (times-- > 0) all += piece;
  return all;
}
Malformed decode(const std::string& bytes) {
  Answer answer;
  return decode_answer(as_bytes(bytes), answer);
}
Malformed decode(std::uint32_t tag, const std::string& fields) { return decode(body(test_session(), tag, fields)); }

const std::string kHeadHex = repeat("aa", 32) + repeat("bb", 32) + "7830782d657865632d763100";
const std::string kIdHex = "0102030405060708090a0b0c0d0e0f10";

// One well-formed answer of every kind.
std::vector<std::string> good_answers() {
  const Session session = test_session();
  return {body(session, 2, u32(4242)),
          body(session, 3, u32(0) + text("hello")),
          body(session, 4, u32(9) + text(std::string("\0\xff", 2))),
          body(session, 5, u32(7) + text("cancelled by the requester")),
          body(session, 6, ExitFields{.code = some(3)}.bytes()),
          body(session, 6, ExitFields{.signal = some(9), .truncated = "\x01"}.bytes()),
          body(session, 6, ExitFields{.reason = some(11)}.bytes())};
}

}  // namespace

TEST_CASE("a request has the bytes worked out by hand") {
  Request request;
  request.argv = {"echo", "42"};
  request.stdin_bytes = "hi";
  request.timeout_ms = 30000;
  CHECK(hex(encode_request(test_session(), request)) ==
        "8f000000"              // 143 bytes follow
        "01" +                  // exec
            kHeadHex +          // agent, machine, prefix
            "00000000" +        // Request
            kIdHex +            //
            "0200000000000000"  // two tokens
            "0400000000000000"
            "6563686f"
            "0200000000000000"
            "3432"
            "01"
            "0200000000000000"
            "6869"      // stdin
            "30750000"  // 30,000 ms
            "00");      // no cwd
}

TEST_CASE("a request without input, with an empty token and a directory") {
  Request request;
  request.argv = {""};
  request.cwd = "/";
  CHECK(hex(encode_request(test_session(), request)) ==
        "80000000"
        "01" +
            kHeadHex + "00000000" + kIdHex +
            "0100000000000000"
            "0000000000000000"
            "00"
            "00000000"
            "01"
            "0100000000000000"
            "2f");
}

TEST_CASE("empty input is not the same as no input") {
  Request none, empty;
  none.argv = empty.argv = {"cat"};
  empty.stdin_bytes = "";
  CHECK(encode_request(test_session(), empty).size() == encode_request(test_session(), none).size() + 8);
}

TEST_CASE("renewal, cancel and questions") {
  CHECK(hex(encode_renewal(test_session())) ==
        "61000000"
        "01" +
            kHeadHex + "01000000" + kIdHex);
  CHECK(hex(encode_cancel(test_session())) ==
        "61000000"
        "01" +
            kHeadHex + "07000000" + kIdHex);
  CHECK(hex(encode_question(wire::kKindDiagnostics)) ==
        "01000000"
        "02");
  CHECK(hex(encode_question(wire::kKindSessions)) ==
        "01000000"
        "03");
}

TEST_CASE("the limit of a message counts what follows the length") {
  Request request;
  request.argv = {"cat"};
  request.stdin_bytes = "";
  const std::size_t empty = encode_request(test_session(), request).size() - 4;
  request.stdin_bytes = std::string(wire::kMaxMessageBytes - empty, 'x');
  CHECK(fits(encode_request(test_session(), request)));
  request.stdin_bytes->push_back('x');
  CHECK_FALSE(fits(encode_request(test_session(), request)));
}

TEST_CASE("answers are read back field by field") {
  Answer answer;
  const auto read = [&](std::uint32_t tag, const std::string& fields) {
    const std::string bytes = body(test_session(), tag, fields);
    REQUIRE(decode_answer(as_bytes(bytes), answer) == Malformed::none);
    CHECK(answer.session == test_session());
  };
  read(2, u32(4242));
  CHECK(std::get<Started>(answer.frame).pid == 4242);
  const std::string chunk = body(test_session(), 4, u32(9) + text(std::string("\0\xff", 2)));
  REQUIRE(decode_answer(as_bytes(chunk), answer) == Malformed::none);
  const Output output = std::get<Output>(answer.frame);
  CHECK(output.stream == Stream::err);
  CHECK(output.seq == 9);
  CHECK(as_text(output.data) == std::string_view("\0\xff", 2));
  read(5, u32(2) + text("soon"));
  CHECK(std::get<Warning>(answer.frame).kind == wire::WarningKind::duration_approaching_cap);
  CHECK(std::get<Warning>(answer.frame).message == "soon");
  read(6, ExitFields{.code = some(-1),
                     .signal = some(9),
                     .duration_ms = 1,
                     .out_total = 2,
                     .err_total = 3,
                     .truncated = "\x01",
                     .reason = some(10)}
              .bytes());
  const Exit exit = std::get<Exit>(answer.frame);
  CHECK(exit.code == -1);
  CHECK(exit.signal == 9);
  CHECK(exit.duration_ms == 1);
  CHECK(exit.stdout_bytes_total == 2);
  CHECK(exit.stderr_bytes_total == 3);
  CHECK(exit.truncated);
  CHECK(exit.denial_reason == wire::DenialReason::spawn_failed);
}

TEST_CASE("every truncation and every trailing byte is refused") {
  for (const std::string& good : good_answers()) {
    REQUIRE(decode(good) == Malformed::none);
    for (std::size_t size = 0; size < good.size(); ++size) CHECK(decode(good.substr(0, size)) == Malformed::too_short);
    CHECK(decode(good + '\0') == Malformed::trailing_bytes);
  }
}

TEST_CASE("frames of the wrong direction and unknown tags are refused") {
  for (const std::uint32_t tag : {0u, 1u, 7u}) CHECK(decode(tag, "") == Malformed::wrong_direction);
  for (const std::uint32_t tag : {8u, 255u, 0xffffffffu}) CHECK(decode(tag, "") == Malformed::unknown_tag);
}

TEST_CASE("a flag above 1 is refused wherever it stands") {
  const std::string bad = "\x02";
  const std::string bad_some = bad + u32(0);
  CHECK(decode(6, ExitFields{.code = bad}.bytes()) == Malformed::bad_flag);
  CHECK(decode(6, ExitFields{.code = bad_some}.bytes()) == Malformed::bad_flag);
  CHECK(decode(6, ExitFields{.signal = bad}.bytes()) == Malformed::bad_flag);
  CHECK(decode(6, ExitFields{.truncated = bad}.bytes()) == Malformed::bad_flag);
  CHECK(decode(6, ExitFields{.reason = bad}.bytes()) == Malformed::bad_flag);
  CHECK(decode(6, ExitFields{.reason = "\xff" + u32(3)}.bytes()) == Malformed::bad_flag);
}

TEST_CASE("numbers without a name are refused") {
  CHECK(decode(5, u32(7) + text("")) == Malformed::none);
  CHECK(decode(5, u32(8) + text("")) == Malformed::unknown_warning);
  CHECK(decode(6, ExitFields{.reason = some(11)}.bytes()) == Malformed::none);
  CHECK(decode(6, ExitFields{.reason = some(12)}.bytes()) == Malformed::unknown_reason);
}

TEST_CASE("a warning that is not UTF-8 is refused, output may be anything") {
  CHECK(decode(5, u32(0) + text("\xc3\x28")) == Malformed::bad_utf8);
  CHECK(decode(5, u32(0) + text("\xed\xa0\x80")) == Malformed::bad_utf8);
  CHECK(decode(3, u32(0) + text("\xc3\x28")) == Malformed::none);
}

TEST_CASE("a length beyond the message is refused") {
  CHECK(decode(3, u32(0) + u64(6) + "hello") == Malformed::too_short);
  CHECK(decode(3, u32(0) + u64(~std::uint64_t{0}) + "hello") == Malformed::too_short);
  CHECK(decode(3, u32(0) + u64(4) + "hello") == Malformed::trailing_bytes);
}

TEST_CASE("another kind and another prefix are refused") {
  std::string bytes = good_answers()[0];
  bytes[0] = 2;
  CHECK(decode(bytes) == Malformed::wrong_kind);
  bytes = good_answers()[0];
  bytes[65 + 10] = '2';  // x0x-exec-v2
  CHECK(decode(bytes) == Malformed::wrong_prefix);
}

TEST_CASE("documents") {
  std::string_view document;
  CHECK(decode_document(as_bytes("\x02{}"), 2, document) == Malformed::none);
  CHECK(document == "{}");
  CHECK(decode_document(as_bytes("\x03{}"), 2, document) == Malformed::wrong_kind);
  CHECK(decode_document(as_bytes("\x02\xff"), 2, document) == Malformed::bad_utf8);
  CHECK(decode_document(as_bytes(""), 2, document) == Malformed::too_short);
}

TEST_CASE("hex in either case, whole and nothing else") {
  RequestId id{};
  CHECK(from_hex("00112233445566778899aAbBcCdDeEfF", id));
  CHECK(to_hex(id) == "00112233445566778899aabbccddeeff");
  CHECK_FALSE(from_hex("00112233445566778899aabbccddeef", id));
  CHECK_FALSE(from_hex("00112233445566778899aabbccddeeff0", id));
  CHECK_FALSE(from_hex("00112233445566778899aabbccddeefg", id));
  CHECK_FALSE(from_hex("0x112233445566778899aabbccddeeff", id));
}

TEST_CASE("a request id is written as a UUID and read with or without dashes") {
  const RequestId id = test_session().request_id;
  const std::string uuid = "01020304-0506-0708-090a-0b0c0d0e0f10";
  CHECK(to_uuid(id) == uuid);
  RequestId read{};
  CHECK(from_uuid(uuid, read));
  CHECK(read == id);
  read = {};
  CHECK(from_uuid("0102030405060708090A0B0C0D0E0F10", read));
  CHECK(read == id);
  for (const char* const bad : {"", "01020304-0506-0708-090a-0b0c0d0e0f1", "010203040-506-0708-090a-0b0c0d0e0f10",
                                "01020304-0506-0708-090a_0b0c0d0e0f10", "../../../../../../../../../etc/passwd"})
    CHECK_FALSE(from_uuid(bad, read));
}

TEST_CASE("every fault says something of its own") {
  std::vector<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(Malformed::unknown_reason); ++i) {
    const std::string_view words = describe(static_cast<Malformed>(i));
    CHECK_FALSE(words.empty());
    for (const std::string_view other : seen) CHECK(words != other);
    seen.push_back(words);
  }
}
