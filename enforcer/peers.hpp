// The connections of front ends: where they reach us, messages in, frames out, and a bound on everything a peer can
// make us hold.
//
// The socket is our own or one that systemd holds for us. A socket file nobody listens on is replaced; a live one, and
// anything that is not a socket, is left alone.
// A peer holds one message of at most 2 MiB and kMaxUnsent of output. When every place is taken the peer that has been
// silent longest makes room, so connections that say nothing lock nobody out. Peers of a foreign user are closed before
// a byte is read. Shown by tests/enforcer/peers_test.cpp.
#pragma once

#include "enforcer/frame.hpp"

namespace x0x {

inline constexpr int kActivatedSocket = 3;  // systemd's own agreement
inline constexpr std::uint32_t kMaxPeers = 256;
inline constexpr std::size_t kDataBudget = 256u << 10;  // unsent bytes beyond which pipes are not read
inline constexpr std::size_t kAnswerBudget = 1u << 20;  // unsent bytes beyond which messages are not read
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kMaxUnsent = 2u << 20;  // room for a document and every session's last frames
inline constexpr std::uint64_t kSpoke = kNever / 2;  // added to the standing of a peer that has said something

// Closes every descriptor we were not meant to have, and opens 0-2 where they are missing. True: systemd passed a
// listening socket.
bool close_inherited();

int probe_socket(const char* path);             // 0: somebody listens; otherwise an errno
Fault claim_socket(const char* path, int& fd);  // mode 0600, non-blocking
void notify_systemd(std::string_view state);

struct Peer {
  int fd = -1;
  bool leaving = false;  // nothing more is read; what is unsent may still leave
  bool dead = false;
  std::uint32_t sessions = 0;
  std::uint64_t standing = 0;  // when it was last heard of; of those that can make room the least does
  std::uint8_t length[wire::kLengthBytes] = {};
  std::uint8_t *message = nullptr, *unsent = nullptr;     // message null: the length is not complete yet
  std::size_t received = 0;                               // of the length, then of the message
  std::size_t sent = 0, unsent_end = 0, unsent_room = 0;  // what waits is between the first two

  std::size_t waiting() const { return unsent_end - sent; }
  bool makes_room() const { return leaving || (sessions == 0 && waiting() == 0); }
  bool listens() const { return fd >= 0 && !leaving && !dead && waiting() < kAnswerBudget; }

  // Reads what there is of a message. True: it is whole and belongs to the caller, who frees it; an empty one when its
  // length makes no sense.
  bool receive(std::span<std::uint8_t>& whole, std::uint64_t now);
  std::uint8_t* reserve(std::size_t size);  // room at the end of what waits, or null; unsent_end += what was used of it
  void send(Bytes head, Bytes tail = {});
  void send_unsent();  // a peer that is through with us is dead afterwards
  void close();
};

// A place for a new connection, or null. allowed_uids: who may connect.
Peer* admit(std::span<Peer> peers, int fd, std::span<const std::uint32_t> allowed_uids, std::uint64_t now);

}  // namespace x0x
