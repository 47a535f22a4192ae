#include "enforcer/peers.hpp"

#include "enforcer/system.hpp"

namespace x0x {

Peer* admit(std::span<Peer> peers, int fd, std::span<const std::uint32_t> allowed_uids, std::uint64_t now) {
  ucred user{};
  socklen_t size = sizeof user;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0 || std::ranges::count(allowed_uids, user.uid) == 0)
    return nullptr;
  // A free place, or that of the idle peer that has been silent longest; one that never spoke goes first.
  const auto rank = [](const Peer& p) { return p.fd < 0 ? 0 : (p.spoke ? kNever : 1) + p.last_active; };
  Peer* best = nullptr;
  for (Peer& p : peers)
    if (p.sessions == 0 && p.waiting() == 0 && (best == nullptr || rank(p) < rank(*best))) best = &p;
  if (best == nullptr) return nullptr;
  if (best->fd >= 0) best->close();
  best->fd = fd;
  best->last_active = now;
  return best;
}

void Peer::close() {
  ::close(fd);
  free(message);
  free(unsent);
  *this = {};
}

bool Peer::listens() const {
  return (ready & ~std::uint32_t{EPOLLOUT}) != 0 && !leaving && !dead && waiting() < kAnswerBudget;
}

Received Peer::receive(std::span<std::uint8_t>& whole, std::uint64_t now) {
  const std::size_t wanted = message == nullptr ? sizeof length : load_u32(length);
  const ssize_t n = recv(fd, (message == nullptr ? length : message) + received, wanted - received, 0);
  ready = n > 0 ? 1u : 0u;
  dead = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n <= 0) return Received::nothing;
  received += static_cast<std::size_t>(n);
  if (received < wanted) return Received::part;
  received = 0;
  if (message == nullptr) {
    const std::uint32_t announced = load_u32(length);
    if (announced == 0 || announced > wire::kMaxMessageBytes) return Received::malformed;
    message = static_cast<std::uint8_t*>(malloc(announced));
    dead = message == nullptr;
    return Received::part;
  }
  whole = {message, wanted};
  message = nullptr;
  spoke = true;
  last_active = now;
  return Received::message;
}

std::uint8_t* Peer::reserve(std::size_t size) {
  if (dead || leaving) return nullptr;
  if (size > unsent_room - unsent_end && sent > 0) {
    memmove(unsent, unsent + sent, waiting());
    unsent_end -= sent;
    sent = 0;
  }
  if (size > unsent_room - unsent_end) {
    const std::size_t grown = std::min(std::max(unsent_end + size, 2 * unsent_room), kMaxUnsent);
    void* const room = unsent_end + size > grown ? nullptr : realloc(unsent, grown);
    dead = room == nullptr;
    if (dead) return nullptr;
    unsent = static_cast<std::uint8_t*>(room);
    unsent_room = grown;
  }
  return unsent + unsent_end;
}

void Peer::send(Bytes head, Bytes tail) {
  std::uint8_t* const room = reserve(head.size() + tail.size());
  if (room == nullptr) return;
  memcpy(room, head.data(), head.size());
  if (!tail.empty()) memcpy(room + head.size(), tail.data(), tail.size());
  unsent_end += head.size() + tail.size();
}

void Peer::send_unsent(std::uint64_t now) {
  const ssize_t n = waiting() > 0 ? ::send(fd, unsent + sent, waiting(), MSG_NOSIGNAL) : 0;
  dead = dead || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n > 0) sent += static_cast<std::size_t>(n);
  if (waiting() == 0) sent = unsent_end = 0;
  dead = dead || (leaving && (waiting() == 0 || now >= last_active + kFarewellMs));
}

}  // namespace x0x
