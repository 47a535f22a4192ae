#include "enforcer/peers.hpp"

namespace x0x {

// A socket address, or an empty length when the name does not fit. A leading `@` means an abstract name.
struct UnixAddress {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = 0;

  explicit UnixAddress(std::string_view name) {
    if (name.empty() || name.size() >= sizeof address.sun_path) return;
    memcpy(address.sun_path, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1));
    if (name[0] == '@') address.sun_path[0] = '\0';
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

static bool passed_by_systemd() {
  const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
  int listening = 0;
  socklen_t size = sizeof listening;
  return pid != nullptr && count != nullptr && strtol(pid, nullptr, 10) == getpid() && strcmp(count, "1") == 0 &&
         getsockopt(kActivatedSocket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening == 1 &&
         fcntl(kActivatedSocket, F_SETFD, FD_CLOEXEC) == 0 && fcntl(kActivatedSocket, F_SETFL, O_NONBLOCK) == 0;
}

bool close_inherited() {
  const bool activated = passed_by_systemd();
  close_range(kActivatedSocket + (activated ? 1 : 0), ~0u, 0);
  for (int fd = 0; fd <= 2;)
    if (fcntl(fd, F_GETFD) >= 0 || open("/dev/null", O_RDWR) == fd) ++fd;
  return activated;
}

// 0 when somebody listens, or what connecting to it gave.
int probe_socket(const char* path) {
  const UnixAddress name(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int error = connect(fd, name.get(), name.length) == 0 || errno == EAGAIN ? 0 : errno;
  close(fd);
  return error;
}

Fault claim_socket(const char* path, int& fd) {
  const UnixAddress name(path);
  struct stat old {};
  const int error = probe_socket(path);
  if (error == 0) return Fault::socket_in_use;
  if (error == ECONNREFUSED && lstat(path, &old) == 0 && S_ISSOCK(old.st_mode)) unlink(path);
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t before = umask(0177);
  const bool bound = bind(fd, name.get(), name.length) == 0 && listen(fd, SOMAXCONN) == 0;
  umask(before);
  return bound ? Fault::none : Fault::socket_not_possible;
}

void notify_systemd(std::string_view state) {
  const char* const path = getenv("NOTIFY_SOCKET");
  const UnixAddress to(path != nullptr ? path : "");
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (to.length > 0) sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, to.get(), to.length);
  close(fd);
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
  return fd >= 0 && (ready & ~std::uint32_t{EPOLLOUT}) != 0 && !leaving && !dead && waiting() < kAnswerBudget;
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
