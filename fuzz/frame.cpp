// A message of a front end, after its length: what is decoded, written again, gives the same bytes.
//
// So nothing in a message is skipped, and no two messages mean the same.
#include <algorithm>

#include "client/codec.hpp"
#include "enforcer/frame.hpp"
#include "fuzz/target.hpp"

using namespace x0x;

namespace {

client::Message encode_again(const Message& m, const std::string& cwd) {
  client::Session session;
  std::ranges::copy(m.address.agent().bytes, session.pair.agent.begin());
  std::ranges::copy(m.address.machine().bytes, session.pair.machine.begin());
  std::ranges::copy(m.address.request_id, session.request_id.begin());
  if (m.kind != wire::kKindExec) return client::encode_question(m.kind);
  if (m.tag == wire::Tag::lease_renew) return client::encode_renewal(session);
  if (m.tag == wire::Tag::cancel) return client::encode_cancel(session);
  client::Request request;
  for (Bytes rest = m.argv_block; !rest.empty();) {
    request.argv.emplace_back(x0x::as_text(next_token(rest)));
    std::ranges::replace(request.argv.back(), static_cast<char>(kNulInToken), '\0');
  }
  if (m.stdin_data.data() != nullptr) request.stdin_bytes = x0x::as_text(m.stdin_data);
  request.timeout_ms = m.timeout_ms;
  if (m.cwd_present) request.cwd = cwd;
  return client::encode_request(session, request);
}

}  // namespace

X0X_FUZZ(frame) {
  client::Message bytes(data, data + size);  // an allocation of exactly this size: a read beyond it is seen
  Message message;
  if (!decode(bytes, message)) return 0;
  if (message.kind == wire::kKindExec) fuzz::promise(message.has_address, "a valid frame has an address");
  // The decoder does not keep a cwd, which is never allowed: take it from the end of the message.
  client::Message again = encode_again(message, "");
  if (message.cwd_present && again.size() - wire::kLengthBytes <= size)
    again = encode_again(message, std::string(data + again.size() - wire::kLengthBytes, data + size));
  fuzz::promise(std::ranges::equal(Bytes(again).subspan(wire::kLengthBytes), Bytes(data, size)),
                "what was decoded, written again, is the message");
  return 0;
}
