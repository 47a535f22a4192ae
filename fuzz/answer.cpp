// A message of the enforcer, as the client reads it: refused by name, or within what docs/wire.md allows.
#include "client/codec.hpp"
#include "enforcer/text.hpp"
#include "fuzz/target.hpp"

using namespace x0x;

X0X_FUZZ(answer) {
  const client::Message message(data, data + size);
  client::Answer answer;
  std::string_view document;
  const client::Malformed fault = client::decode_answer(message, answer);
  fuzz::promise(!client::describe(fault).empty() || fault == client::Malformed::none, "every fault has a name");
  if (fault == client::Malformed::none && std::holds_alternative<client::Warning>(answer.frame)) {
    const client::Warning& warning = std::get<client::Warning>(answer.frame);
    fuzz::promise(static_cast<std::uint32_t>(warning.kind) < 8, "a warning has a kind we know");
    fuzz::promise(is_utf8(client::as_bytes(warning.message)), "a warning is text");
  }
  for (const std::uint8_t kind : {wire::kKindDiagnostics, wire::kKindSessions})
    if (client::decode_document(message, kind, document) == client::Malformed::none)
      fuzz::promise(data[0] == kind && is_utf8(client::as_bytes(document)), "a document is text of its kind");
  return 0;
}
