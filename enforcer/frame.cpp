#include "enforcer/frame.hpp"

#include <algorithm>
#include <cstring>

#include "enforcer/text.hpp"

namespace x0x {

using namespace wire;

namespace {

Bytes string(Cursor& in, bool& valid) {
  const Bytes text = in.take(in.u64());
  valid = valid && is_utf8(text);
  return text;
}

bool option(Cursor& in, bool& valid) {
  const std::uint8_t present = in.u8();
  valid = valid && present <= 1;
  return present == 1;
}

// A token's eight bytes of length stand before it, so the block with its NULs never overtakes what is still
// to be read.
bool decode_request(Cursor& in, std::uint8_t* block, Message& out) {
  bool valid = true;
  std::uint8_t* end = block;
  const std::uint64_t argc = in.u64();
  for (std::uint64_t i = 0; i < argc && !in.failed(); ++i) {
    const Bytes token = string(in, valid);
    const Bytes kept(end, token.size());
    end = std::copy(token.begin(), token.end(), end);
    *end++ = 0;
    if (i <= blob::kMaxArgc)
      out.argv[out.argc++] = kept;
    else if (has_forbidden_byte(kept))
      out.argv[blob::kMaxArgc] = kept;  // too long to match anyway; it must still be denied for this byte
  }
  out.argv_block = {block, end};
  if (option(in, valid)) out.stdin_data = in.take(in.u64());
  out.timeout_ms = in.u32();
  out.cwd_present = option(in, valid);
  if (out.cwd_present) string(in, valid);
  return valid;
}

}  // namespace

bool decode(std::span<std::uint8_t> bytes, Message& out) {
  Cursor in(bytes);
  out.kind = in.u8();
  out.has_address = out.cwd_present = false;
  out.argc = out.timeout_ms = 0;
  out.argv_block = out.stdin_data = {};
  if (out.kind == kKindDiagnostics || out.kind == kKindSessions) return in.at_end();
  const Bytes pair = in.take(blob::kPairBytes);
  const Bytes prefix = in.take(kPrefixBytes);
  out.tag = static_cast<Tag>(in.u32());
  const Bytes id = in.take(kRequestIdBytes);
  if (in.failed() || out.kind != kKindExec || std::memcmp(prefix.data(), kPrefix, kPrefixBytes) != 0) return false;
  out.has_address = true;
  std::memcpy(out.address.pair, pair.data(), pair.size());
  std::memcpy(out.address.request_id, id.data(), id.size());
  if (out.tag == Tag::lease_renew || out.tag == Tag::cancel) return in.at_end();
  // The block starts where argc stood: its eight bytes keep the NULs behind what is still to be read.
  std::uint8_t* block = bytes.data() + (bytes.size() - in.left());
  return out.tag == Tag::request && decode_request(in, block, out) && in.at_end();
}

std::uint32_t split_argv(Bytes block, std::span<Bytes> tokens) {
  std::uint32_t count = 0;
  while (!block.empty() && count < tokens.size()) {
    const Bytes token = block.first(std::strlen(reinterpret_cast<const char*>(block.data())));
    tokens[count++] = token;
    block = block.subspan(token.size() + 1);
  }
  return count;
}

Frame::Frame(const Address& to, Tag tag) {
  number(kKindExec, 1).append(to.pair).append(as_bytes({kPrefix, kPrefixBytes}));
  number(static_cast<std::uint32_t>(tag), 4).append(to.request_id);
}

Frame& Frame::number(std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) bytes_[used_++] = static_cast<std::uint8_t>(value >> (8 * i));
  return *this;
}

Frame& Frame::append(Bytes bytes) {
  std::memcpy(bytes_ + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
  return *this;
}

Frame& Frame::option(bool present, int value) {
  number(present ? 1 : 0, 1);
  return present ? number(static_cast<std::uint32_t>(value), 4) : *this;
}

Bytes Frame::finish(std::size_t tail) {
  const std::size_t end = used_;
  used_ = 0;
  number(end + tail - kLengthBytes, kLengthBytes);
  used_ = end;
  return {bytes_, end};
}

Frame warning_frame(const Address& to, WarningKind kind, std::string_view message) {
  Frame frame(to, Tag::warning);
  return frame.number(static_cast<std::uint32_t>(kind), 4).number(message.size(), 8).append(as_bytes(message));
}

Frame exit_frame(const Address& to, const ExitFacts& facts) {
  Frame frame(to, Tag::exit);
  frame.option(facts.code >= 0, facts.code).option(facts.signal > 0, facts.signal);
  frame.number(facts.duration_ms, 8).number(facts.stdout_bytes, 8).number(facts.stderr_bytes, 8);
  return frame.number(facts.truncated ? 1 : 0, 1).option(facts.denial >= 0, facts.denial);
}

}  // namespace x0x
