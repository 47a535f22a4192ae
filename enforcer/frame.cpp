#include "enforcer/frame.hpp"

#include <utility>

namespace x0x {

using namespace wire;

static Bytes string(Cursor& in, bool& valid) {
  const Bytes text = in.take(in.u64());
  valid = valid && is_utf8(text);
  return text;
}

static bool option(Cursor& in, bool& valid) {
  const std::uint8_t present = in.u8();
  valid = valid && present <= 1;
  return present == 1;
}

// The block starts where argc stood, and a token's eight bytes of length stand before it, so the block with its NULs
// never overtakes what is still to be read.
static bool decode_request(Cursor& in, std::uint8_t* block, Message& out) {
  bool valid = true;
  std::uint8_t* end = block;
  for (std::uint64_t left = in.u64(); left > 0 && !in.failed(); --left, ++out.argc) {
    const Bytes token = string(in, valid);
    end = std::replace_copy(token.begin(), token.end(), end, std::uint8_t{0}, kNulInToken);
    *end++ = 0;
  }
  out.argv_block = {block, end};
  if (option(in, valid)) out.stdin_data = in.take(in.u64());
  out.timeout_ms = in.u32();
  out.cwd_present = option(in, valid);
  if (out.cwd_present) string(in, valid);
  return valid;
}

bool decode(std::span<std::uint8_t> bytes, Message& out) {
  Cursor in(bytes);
  out = {};
  out.kind = in.u8();
  if (out.kind == kKindDiagnostics || out.kind == kKindSessions) return in.at_end();
  const Bytes pair = in.take(blob::kPairBytes), prefix = in.take(kPrefixBytes);
  out.tag = static_cast<Tag>(in.u32());
  const Bytes id = in.take(kRequestIdBytes);
  if (in.failed() || out.kind != kKindExec || memcmp(prefix.data(), kPrefix, kPrefixBytes) != 0) return false;
  out.has_address = true;
  std::ranges::copy(pair, out.address.pair);
  std::ranges::copy(id, out.address.request_id);
  if (out.tag == Tag::lease_renew || out.tag == Tag::cancel) return in.at_end();
  std::uint8_t* const block = bytes.data() + (bytes.size() - in.left());
  return out.tag == Tag::request && decode_request(in, block, out) && in.at_end();
}

Frame::Frame(const Address& to, Tag tag) {
  number(kKindExec, 1).append(to.pair).append(as_bytes({kPrefix, kPrefixBytes}));
  number(static_cast<std::uint32_t>(tag)).append(to.request_id);
}

Frame& Frame::number(std::uint64_t value, std::size_t width) {
  for (; width > 0; --width, value >>= 8) bytes_[used_++] = static_cast<std::uint8_t>(value);
  return *this;
}

Frame& Frame::append(Bytes bytes) {
  std::ranges::copy(bytes, bytes_ + used_);
  used_ += bytes.size();
  return *this;
}

Bytes Frame::finish(std::size_t tail) {
  const std::size_t end = std::exchange(used_, 0);
  number(end + tail - kLengthBytes, kLengthBytes);
  return {bytes_, end};
}

Frame warning_frame(const Address& to, std::uint32_t kind) {
  const Bytes message = as_bytes(kWarningMessages[kind]);
  return Frame(to, Tag::warning).number(kind).number(message.size(), 8).append(message);
}

Frame exit_frame(const Address& to, const ExitFacts& facts) {
  Frame frame(to, Tag::exit);
  const auto option = [&](bool present, int value) {
    frame.number(present ? 1 : 0, 1).number(static_cast<std::uint32_t>(value), present ? 4 : 0);
  };
  option(facts.code >= 0, facts.code);
  option(facts.signal > 0, facts.signal);
  frame.number(facts.duration_ms, 8).number(facts.stdout_bytes, 8).number(facts.stderr_bytes, 8);
  frame.number(facts.truncated ? 1 : 0, 1);
  option(facts.denial >= 0, facts.denial);
  return frame;
}

}  // namespace x0x
