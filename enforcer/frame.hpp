// The trusted half of the frame codec: reads what a client may send, writes what a client is told.
//
// The reader is stricter than bincode: every byte of a message is accounted for, a frame in the wrong direction is
// malformed. The bytes are docs/wire.md's. Shown by tests/enforcer/frame_test.cpp.
#pragma once

#include "enforcer/decide.hpp"
#include "enforcer/json.hpp"

namespace x0x {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0} / 2;  // in milliseconds

// Who asked for what: with the connection, the name of a session.
struct Address {
  std::uint8_t pair[blob::kPairBytes];  // agent id, machine id
  std::uint8_t request_id[wire::kRequestIdBytes];

  Hex agent() const { return {{pair, wire::kIdBytes}}; }
  Hex machine() const { return {{pair + wire::kIdBytes, wire::kIdBytes}}; }
  Hex id() const { return {request_id}; }
};

// One decoded message. Everything points into the message's own bytes.
struct Message {
  std::uint8_t kind = 0;
  wire::Tag tag = {};
  bool has_address = false;  // also set for a malformed message whose request id could still be read
  bool cwd_present = false;
  Address address = {};
  Bytes argv_block;  // every token followed by a NUL; a NUL inside a token has become kNulInToken
  std::uint32_t argc = 0, timeout_ms = 0;
  Bytes stdin_data;

  Request request() const { return {address.pair, argv_block, cwd_present, stdin_data.size(), timeout_ms}; }
};

// Decodes what follows the length field. Argv tokens are moved together in place.
bool decode(std::span<std::uint8_t> bytes, Message& out);

// How a request ended. -1: no code, no signal, no denial.
struct ExitFacts {
  int code = -1, signal = -1;
  std::uint64_t duration_ms = 0, stdout_bytes = 0, stderr_bytes = 0;
  bool truncated = false;
  int denial = -1;
};

// One message to a client, built in place: its head, or all of it when it is small.
class Frame {
 public:
  explicit Frame(std::uint8_t kind) { number(kind, 1); }  // a document: its text follows
  Frame(const Address& to, wire::Tag tag) : Frame(wire::kKindExec) {
    append(to.pair).append(as_bytes({wire::kPrefix, wire::kPrefixBytes}));
    number(static_cast<std::uint32_t>(tag)).append(to.request_id);
  }

  Frame& append(Bytes bytes) {
    std::ranges::copy(bytes, bytes_ + used_);
    used_ += bytes.size();
    return *this;
  }
  Frame& number(std::uint64_t value, std::size_t width = 4) {
    return append({reinterpret_cast<const std::uint8_t*>(&value), width});
  }
  Frame& option(int value) {  // -1: none
    return value < 0 ? number(0, 1) : number(1, 1).number(static_cast<std::uint32_t>(value));
  }

  // The frame's bytes when `tail` more will follow.
  Bytes finish(std::size_t tail = 0) {
    const std::size_t length = used_ + tail - wire::kLengthBytes;
    memcpy(bytes_, &length, wire::kLengthBytes);
    return {bytes_, used_};
  }

 private:
  std::uint8_t bytes_[256];
  std::size_t used_ = wire::kLengthBytes;
};

Frame warning_frame(const Address& to, std::uint32_t kind);
Frame exit_frame(const Address& to, const ExitFacts& facts);

}  // namespace x0x
