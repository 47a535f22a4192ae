#include "enforcer/peers.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace x0x {

void Peers::close(Peer& peer) {
  ::close(peer.fd);
  std::free(peer.message);
  std::free(peer.unsent);
  peer = {};
}

// A free place, or that of the idle peer which has been silent longest; one that never spoke goes first.
Peer* Peers::place() {
  Peer* victim = nullptr;
  for (Peer& p : peers_) {
    if (p.fd < 0) return &p;
    if (p.sessions > 0 || p.unsent_size > 0) continue;
    if (victim == nullptr || p.spoke < victim->spoke ||
        (p.spoke == victim->spoke && p.last_active < victim->last_active))
      victim = &p;
  }
  if (victim != nullptr) close(*victim);
  return victim;
}

bool Peers::accept(int listener, std::span<const std::uint32_t> allowed_uids, std::uint64_t now) {
  for (std::uint32_t i = 0; i < kMaxPeers; ++i) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno != EMFILE && errno != ENFILE;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool allowed = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                         std::find(allowed_uids.begin(), allowed_uids.end(), peer.uid) != allowed_uids.end();
    Peer* const p = allowed ? place() : nullptr;
    if (p == nullptr) {
      ::close(fd);
      continue;
    }
    p->fd = fd;
    p->last_active = now;
  }
  return true;
}

Received Peers::receive(Peer& peer, std::span<std::uint8_t>& message, std::uint64_t now) {
  const bool in_length = peer.message == nullptr;
  const std::size_t length = in_length ? sizeof peer.length : load_u32(peer.length);
  const ssize_t n =
      recv(peer.fd, (in_length ? peer.length : peer.message) + peer.received, length - peer.received, 0);
  peer.dead = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n <= 0) return Received::nothing;
  peer.received += static_cast<std::size_t>(n);
  if (peer.received < length) return Received::nothing;
  peer.received = 0;
  if (!in_length) {
    message = {peer.message, length};
    peer.message = nullptr;
    peer.spoke = true;
    peer.last_active = now;
    return Received::message;
  }
  const std::uint32_t announced = load_u32(peer.length);
  if (announced == 0 || announced > wire::kMaxMessageBytes) return Received::bad_length;
  peer.message = static_cast<std::uint8_t*>(std::malloc(announced));
  peer.dead = peer.message == nullptr;
  return Received::nothing;
}

void Peers::send(Peer& peer, Bytes head, Bytes tail) {
  const std::size_t size = peer.unsent_size + head.size() + tail.size();
  if (size > peer.unsent_room && !peer.dead) {
    const std::size_t room = std::max(size, 2 * peer.unsent_room);
    void* const grown = size <= kMaxUnsent ? std::realloc(peer.unsent, room) : nullptr;
    peer.dead = grown == nullptr;
    if (!peer.dead) peer.unsent = static_cast<std::uint8_t*>(grown);
    if (!peer.dead) peer.unsent_room = room;
  }
  if (peer.dead || peer.leaving) return;
  std::copy(tail.begin(), tail.end(), std::copy(head.begin(), head.end(), peer.unsent + peer.unsent_size));
  peer.unsent_size = size;
}

void Peers::send_unsent(Peer& peer, std::uint64_t now) {
  if (peer.unsent_size > 0) {
    const ssize_t n = ::send(peer.fd, peer.unsent, peer.unsent_size, MSG_NOSIGNAL);
    peer.dead = peer.dead || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0) {
      peer.unsent_size -= static_cast<std::size_t>(n);
      std::memmove(peer.unsent, peer.unsent + n, peer.unsent_size);
    }
  }
  peer.dead = peer.dead || (peer.leaving && (peer.unsent_size == 0 || now >= peer.last_active + kFarewellMs));
}

}  // namespace x0x
