#include "client/codec.hpp"

#include <algorithm>
#include <iterator>

#include "enforcer/cursor.hpp"
#include "enforcer/text.hpp"

namespace x0x::client {

namespace {

// ---- writing

void put_bytes(Message& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
template <class Unsigned>
void put(Message& to, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
void put_string(Message& to, std::string_view text) {
  put(to, std::uint64_t{text.size()});
  put_bytes(to, as_bytes(text));
}
void put_optional(Message& to, const std::optional<std::string>& text) {
  put(to, static_cast<std::uint8_t>(text.has_value()));
  if (text) put_string(to, *text);
}

Message open_message(std::uint8_t kind) {
  Message message;
  message.reserve(256);
  message.resize(wire::kLengthBytes);  // the length is known at the end
  message.push_back(kind);
  return message;
}
Message close_message(Message message) {
  const auto length = static_cast<std::uint32_t>(message.size() - wire::kLengthBytes);
  for (std::size_t i = 0; i < wire::kLengthBytes; ++i) message[i] = static_cast<std::uint8_t>(length >> (8 * i));
  return message;
}
Message open_frame(const Session& session, wire::Tag tag) {
  Message message = open_message(wire::kKindExec);
  put_bytes(message, session.pair.agent);
  put_bytes(message, session.pair.machine);
  put_bytes(message, as_bytes({wire::kPrefix, wire::kPrefixBytes}));
  put(message, static_cast<std::uint32_t>(tag));
  put_bytes(message, session.request_id);
  return message;
}

// ---- reading: a Cursor that also knows flags, strings and the first thing that was wrong

class Reader {
 public:
  explicit Reader(Bytes bytes) : cursor(bytes) {}

  bool flag() {
    const std::uint8_t byte = cursor.u8();
    if (byte > 1) fail(Malformed::bad_flag);
    return byte == 1;
  }
  Bytes bytes() { return cursor.take(cursor.u64()); }
  std::string text() {
    const Bytes raw = bytes();
    if (!is_utf8(raw)) fail(Malformed::bad_utf8);
    return std::string(as_text(raw));
  }
  std::optional<std::int32_t> optional_i32() {
    if (!flag()) return std::nullopt;
    return static_cast<std::int32_t>(cursor.u32());
  }
  void fail(Malformed why) {
    if (fault_ == Malformed::none) fault_ = why;
  }
  Malformed finish() const {
    if (fault_ != Malformed::none) return fault_;
    if (cursor.failed()) return Malformed::too_short;
    return cursor.at_end() ? Malformed::none : Malformed::trailing_bytes;
  }

  Cursor cursor;

 private:
  Malformed fault_ = Malformed::none;
};

Warning read_warning(Reader& reader) {
  Warning warning;
  const std::uint32_t kind = reader.cursor.u32();
  if (kind >= std::size(wire::kWarningNames)) reader.fail(Malformed::unknown_warning);
  warning.kind = static_cast<wire::WarningKind>(kind);
  warning.message = reader.text();
  return warning;
}

Exit read_exit(Reader& reader) {
  Exit exit;
  exit.code = reader.optional_i32();
  exit.signal = reader.optional_i32();
  exit.duration_ms = reader.cursor.u64();
  exit.stdout_bytes_total = reader.cursor.u64();
  exit.stderr_bytes_total = reader.cursor.u64();
  exit.truncated = reader.flag();
  if (reader.flag()) {
    const std::uint32_t reason = reader.cursor.u32();
    if (reason >= std::size(wire::kDenialNames)) reader.fail(Malformed::unknown_reason);
    exit.denial_reason = static_cast<wire::DenialReason>(reason);
  }
  return exit;
}

Output read_output(Reader& reader, Stream stream) {
  Output output;
  output.stream = stream;
  output.seq = reader.cursor.u32();
  output.data = reader.bytes();
  return output;
}

void read_frame(Reader& reader, std::uint32_t tag, Answer& answer) {
  switch (static_cast<wire::Tag>(tag)) {
    case wire::Tag::started:
      answer.frame = Started{reader.cursor.u32()};
      return;
    case wire::Tag::stdout_chunk:
      answer.frame = read_output(reader, Stream::out);
      return;
    case wire::Tag::stderr_chunk:
      answer.frame = read_output(reader, Stream::err);
      return;
    case wire::Tag::warning:
      answer.frame = read_warning(reader);
      return;
    case wire::Tag::exit:
      answer.frame = read_exit(reader);
      return;
    case wire::Tag::request:
    case wire::Tag::lease_renew:
    case wire::Tag::cancel:
      reader.fail(Malformed::wrong_direction);
      return;
  }
  reader.fail(Malformed::unknown_tag);
}

constexpr std::size_t kUuidDashes[] = {8, 13, 18, 23};

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view describe(Malformed fault) {
  switch (fault) {
    case Malformed::none:
      return "nothing is wrong";
    case Malformed::too_short:
      return "a message ends too early";
    case Malformed::trailing_bytes:
      return "a message goes on after its end";
    case Malformed::wrong_kind:
      return "a message is of a kind that was not asked for";
    case Malformed::wrong_prefix:
      return "a frame does not start with `x0x-exec-v1`";
    case Malformed::unknown_tag:
      return "a frame has an unknown tag";
    case Malformed::wrong_direction:
      return "a frame is one that only a client sends";
    case Malformed::bad_flag:
      return "a flag is neither 0 nor 1";
    case Malformed::bad_utf8:
      return "a text is not UTF-8";
    case Malformed::unknown_warning:
      return "a warning has an unknown kind";
    case Malformed::unknown_reason:
      return "a denial has an unknown reason";
  }
  return "a message is malformed";
}

Message encode_request(const Session& session, const Request& request) {
  Message message = open_frame(session, wire::Tag::request);
  put(message, std::uint64_t{request.argv.size()});
  for (const std::string& token : request.argv) put_string(message, token);
  put_optional(message, request.stdin_bytes);
  put(message, request.timeout_ms);
  put_optional(message, request.cwd);
  return close_message(std::move(message));
}

Message encode_renewal(const Session& session) { return close_message(open_frame(session, wire::Tag::lease_renew)); }
Message encode_cancel(const Session& session) { return close_message(open_frame(session, wire::Tag::cancel)); }
Message encode_question(std::uint8_t kind) { return close_message(open_message(kind)); }
bool fits(const Message& message) { return message.size() - wire::kLengthBytes <= wire::kMaxMessageBytes; }

Malformed decode_answer(Bytes message, Answer& answer) {
  Reader reader(message);
  Cursor& cursor = reader.cursor;
  const std::uint8_t kind = cursor.u8();
  if (!cursor.failed() && kind != wire::kKindExec) return Malformed::wrong_kind;
  std::ranges::copy(cursor.take(wire::kIdBytes), answer.session.pair.agent.begin());
  std::ranges::copy(cursor.take(wire::kIdBytes), answer.session.pair.machine.begin());
  const Bytes prefix = cursor.take(wire::kPrefixBytes);
  if (!cursor.failed() && as_text(prefix) != std::string_view(wire::kPrefix, wire::kPrefixBytes))
    return Malformed::wrong_prefix;
  const std::uint32_t tag = cursor.u32();
  std::ranges::copy(cursor.take(wire::kRequestIdBytes), answer.session.request_id.begin());
  if (cursor.failed()) return Malformed::too_short;
  read_frame(reader, tag, answer);
  return reader.finish();
}

Malformed decode_document(Bytes message, std::uint8_t kind, std::string_view& document) {
  Cursor cursor(message);
  const std::uint8_t actual = cursor.u8();
  if (cursor.failed()) return Malformed::too_short;
  if (actual != kind) return Malformed::wrong_kind;
  const Bytes body = cursor.take(cursor.left());
  if (!is_utf8(body)) return Malformed::bad_utf8;
  document = as_text(body);
  return Malformed::none;
}

bool from_hex(std::string_view hex, std::span<std::uint8_t> bytes) {
  if (hex.size() != bytes.size() * 2) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

std::string to_hex(Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string to_uuid(const RequestId& id) {
  std::string text = to_hex(id);
  for (const std::size_t at : kUuidDashes) text.insert(at, 1, '-');
  return text;
}

bool from_uuid(std::string_view text, RequestId& id) {
  std::string hex(text);
  if (hex.size() == 2 * id.size() + std::size(kUuidDashes))
    for (std::size_t i = std::size(kUuidDashes); i-- > 0;) {
      if (hex[kUuidDashes[i]] != '-') return false;
      hex.erase(kUuidDashes[i], 1);
    }
  return from_hex(hex, id);
}

}  // namespace x0x::client
