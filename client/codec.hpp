// The client's half of the frames: writes Request, LeaseRenew, Cancel and the two questions, reads the
// answers.
//
// The reader is strict: a byte too many, a flag above 1, text that is not UTF-8, a number without a name or a
// frame that only a client may send is refused, each with its own name. tests/client/codec_test.cpp holds one
// Request against bytes worked out by hand and breaks every answer in every way.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "enforcer/fault.hpp"
#include "schema/wire_format.hpp"

namespace x0x::client {

using Id = std::array<std::uint8_t, wire::kIdBytes>;
using RequestId = std::array<std::uint8_t, wire::kRequestIdBytes>;
using Message = std::vector<std::uint8_t>;

struct Pair {
  Id agent{};
  Id machine{};
  bool operator==(const Pair&) const = default;
};

// Who asks, and for which session: every exec message starts with these.
struct Session {
  Pair pair;
  RequestId request_id{};
  bool operator==(const Session&) const = default;
};

struct Request {
  std::vector<std::string> argv;
  std::optional<std::string> stdin_bytes;
  std::uint32_t timeout_ms = 0;    // 0: as long as the rule allows
  std::optional<std::string> cwd;  // always denied today; the frame has room for it
};

struct Started {
  std::uint32_t pid = 0;
};
enum class Stream : std::uint8_t { out, err };
struct Output {
  Stream stream = Stream::out;
  std::uint32_t seq = 0;
  Bytes data;  // points into the message
};
struct Warning {
  wire::WarningKind kind{};
  std::string message;
};
struct Exit {
  std::optional<std::int32_t> code;
  std::optional<std::int32_t> signal;
  std::uint64_t duration_ms = 0;
  std::uint64_t stdout_bytes_total = 0;
  std::uint64_t stderr_bytes_total = 0;
  bool truncated = false;
  std::optional<wire::DenialReason> denial_reason;
};
struct Answer {
  Session session;
  std::variant<Started, Output, Warning, Exit> frame;
};

enum class Malformed : std::uint8_t {
  none,
  too_short,
  trailing_bytes,
  wrong_kind,
  wrong_prefix,
  unknown_tag,
  wrong_direction,
  bad_flag,
  bad_utf8,
  unknown_warning,
  unknown_reason,
};
std::string_view describe(Malformed fault);

// Complete messages, length included. They may be longer than the enforcer accepts: see fits().
Message encode_request(const Session& session, const Request& request);
Message encode_renewal(const Session& session);
Message encode_cancel(const Session& session);
Message encode_question(std::uint8_t kind);
bool fits(const Message& message);

// `message` is what follows the length.
Malformed decode_answer(Bytes message, Answer& answer);
// The document of an answer to a question of this kind; its bytes are valid UTF-8.
Malformed decode_document(Bytes message, std::uint8_t kind, std::string_view& document);

// `hex` is exactly two digits a byte, in either case.
bool from_hex(std::string_view hex, std::span<std::uint8_t> bytes);
std::string to_hex(Bytes bytes);
// A request id is shown as a UUID, as in the audit log; both that and 32 bare hex digits are read.
std::string to_uuid(const RequestId& id);
bool from_uuid(std::string_view text, RequestId& id);

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace x0x::client
