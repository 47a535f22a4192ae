#include "enforcer/peers.hpp"

#include "enforcer/system.hpp"

namespace x0x {

void Peer::close() {
  ::close(fd);
  free(message);
  free(unsent);
  *this = {};
}

Peer* admit(std::span<Peer> peers, int fd, std::span<const std::uint32_t> allowed_uids, std::uint64_t now) {
  ucred user{};
  socklen_t size = sizeof user;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0 || std::ranges::count(allowed_uids, user.uid) == 0)
    return nullptr;
  // A free place, or that of the idle peer that has been silent longest; one that never spoke goes first.
  const auto rank = [](const Peer& p) { return p.fd < 0 ? 0 : (p.spoke ? kNever : 1) + p.last_active; };
  Peer* best = nullptr;
  for (Peer& p : peers)
    if (p.sessions == 0 && p.unsent_size == 0 && (best == nullptr || rank(p) < rank(*best))) best = &p;
  if (best == nullptr) return nullptr;
  if (best->fd >= 0) best->close();
  best->fd = fd;
  best->last_active = now;
  return best;
}

Received Peer::receive(std::span<std::uint8_t>& whole, std::uint64_t now) {
  const std::size_t wanted = message == nullptr ? sizeof length : load_u32(length);
  const ssize_t n = recv(fd, (message == nullptr ? length : message) + received, wanted - received, 0);
  ready = n > 0;
  dead = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n <= 0) return Received::nothing;
  received += static_cast<std::size_t>(n);
  if (received < wanted) return Received::part;
  received = 0;
  if (message != nullptr) {
    whole = {message, wanted};
    message = nullptr;
    spoke = true;
    last_active = now;
    return Received::message;
  }
  const std::uint32_t announced = load_u32(length);
  if (announced == 0 || announced > wire::kMaxMessageBytes) return Received::malformed;
  message = static_cast<std::uint8_t*>(malloc(announced));
  dead = message == nullptr;
  return Received::part;
}

void Peer::send(Bytes head, Bytes tail) {
  const std::size_t size = unsent_size + head.size() + tail.size();
  if (dead || leaving || size > kMaxUnsent) dead = dead || !leaving;
  if (dead || leaving) return;
  if (size > unsent_room) {
    void* const grown = realloc(unsent, std::max(size, 2 * unsent_room));
    dead = grown == nullptr;
    if (dead) return;
    unsent = static_cast<std::uint8_t*>(grown);
    unsent_room = std::max(size, 2 * unsent_room);
  }
  std::ranges::copy(tail, std::ranges::copy(head, unsent + unsent_size).out);
  unsent_size = size;
}

void Peer::send_unsent(std::uint64_t now) {
  const ssize_t n = unsent_size > 0 ? ::send(fd, unsent, unsent_size, MSG_NOSIGNAL) : 0;
  dead = dead || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n > 0) memmove(unsent, unsent + n, unsent_size -= static_cast<std::size_t>(n));
  dead = dead || (leaving && (unsent_size == 0 || now >= last_active + kFarewellMs));
}

}  // namespace x0x
