#include "enforcer/frame.hpp"

namespace x0x {

using namespace wire;

static Bytes string(Cursor& in) {
  const Bytes text = in.take(in.u64());
  return is_utf8(text) ? text : in.fail();
}

static bool option(Cursor& in) {
  const std::uint8_t present = in.u8();
  if (present > 1) in.fail();
  return present == 1;
}

// The block starts where argc stood, and a token's eight bytes of length stand before it, so the block with its NULs
// never overtakes what is still to be read.
static bool decode_request(Cursor& in, std::uint8_t* block, Message& out) {
  std::uint8_t* end = block;
  for (std::uint64_t left = in.u64(); left > 0 && !in.failed(); --left, ++out.argc) {
    const Bytes token = string(in);
    end = std::replace_copy(token.begin(), token.end(), end, std::uint8_t{0}, kNulInToken);
    *end++ = 0;
  }
  out.argv_block = {block, end};
  if (option(in)) out.stdin_data = in.take(in.u64());
  out.timeout_ms = in.u32();
  out.cwd_present = option(in);
  if (out.cwd_present) string(in);
  return in.at_end();
}

bool decode(std::span<std::uint8_t> bytes, Message& out) {
  Cursor in(bytes);
  out = {};
  out.kind = in.u8();
  if (out.kind == kKindDiagnostics || out.kind == kKindSessions) return in.at_end();
  std::ranges::copy(in.take(blob::kPairBytes), out.address.pair);
  const bool prefixed = as_text(in.take(kPrefixBytes)) == std::string_view(kPrefix, kPrefixBytes);
  out.tag = static_cast<Tag>(in.u32());
  std::ranges::copy(in.take(kRequestIdBytes), out.address.request_id);
  out.has_address = out.kind == kKindExec && prefixed && !in.failed();
  if (!out.has_address) return false;
  if (out.tag == Tag::request) return decode_request(in, bytes.last(in.left()).data(), out);
  return (out.tag == Tag::lease_renew || out.tag == Tag::cancel) && in.at_end();
}

Frame warning_frame(const Address& to, std::uint32_t kind) {
  const Bytes message = as_bytes(kWarningMessages[kind]);
  return Frame(to, Tag::warning).number(kind).number(message.size(), 8).append(message);
}

Frame exit_frame(const Address& to, const ExitFacts& facts) {
  Frame frame(to, Tag::exit);
  frame.option(facts.code).option(facts.signal).number(facts.duration_ms, 8);
  frame.number(facts.stdout_bytes, 8).number(facts.stderr_bytes, 8).number(facts.truncated, 1);
  return frame.option(facts.denial);
}

}  // namespace x0x
