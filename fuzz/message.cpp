// Bytes from a socket, in pieces of any size: the messages found do not depend on the pieces, and none is too long.
#include "enforcer/peers.hpp"
#include "fuzz/world.hpp"

using namespace x0x;
using namespace x0x::fuzz;

namespace {

struct Socket : World {
  void wait(int) override {}
};

// The messages as plain text, and a last line for what ended them.
std::string receive_all(Bytes bytes, std::size_t piece) {
  Socket world;
  Connection& c = world.connect(7);
  c.fd = world.open(Kind::connection, 0);
  c.piece = piece;
  world.say(c, bytes);
  Peer peer;
  peer.fd = c.fd;
  std::string all;
  for (bool malformed = false; !malformed;) {
    std::span<std::uint8_t> whole;
    const bool received = peer.receive(whole, 1);
    if (!received && c.inbox.empty()) break;
    if (!received) continue;
    malformed = whole.empty();
    promise(whole.size() <= wire::kMaxMessageBytes, "a message of a size we allow");
    Message message;
    all += decode(whole, message) ? "valid " : "invalid ";
    all += std::to_string(whole.size()) + (message.has_address ? " addressed\n" : "\n");
    free(whole.data());
  }
  peer.close();
  return all;
}

}  // namespace

X0X_FUZZ(message) {
  Input in({data, size});
  const std::size_t piece = 1 + in.byte();
  const Bytes bytes = in.take(size);
  promise(receive_all(bytes, piece) == receive_all(bytes, ~std::size_t{0}), "pieces do not matter");
  return 0;
}
