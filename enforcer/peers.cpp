#include "enforcer/peers.hpp"

namespace x0x {

// connect() or bind() with the name of a socket. A leading `@` means an abstract name; none, or one that does not fit,
// leaves a size that the kernel refuses.
static int call_by_name(int (*call)(int, const sockaddr*, socklen_t), int fd, std::string_view name) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::size_t size = 0;
  if (!name.empty() && name.size() < sizeof address.sun_path) {
    size = offsetof(sockaddr_un, sun_path) + name.size();
    std::ranges::copy(name, address.sun_path);
  }
  if (name.starts_with('@')) address.sun_path[0] = '\0';
  return call(fd, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

bool close_inherited() {
  const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
  const bool activated = pid != nullptr && count != nullptr && strtol(pid, nullptr, 10) == getpid() &&
                         strcmp(count, "1") == 0 && listen(kActivatedSocket, SOMAXCONN) == 0 &&
                         fcntl(kActivatedSocket, F_SETFD, FD_CLOEXEC) == 0 &&
                         fcntl(kActivatedSocket, F_SETFL, O_NONBLOCK) == 0;
  for (int fd = 0; fd >= 0 && fd <= 2;) fd = open("/dev/null", O_RDWR);
  close_range(kActivatedSocket + (activated ? 1 : 0), ~0u, 0);
  return activated;
}

int probe_socket(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int error = call_by_name(connect, fd, path) == 0 || errno == EAGAIN ? 0 : errno;
  close(fd);
  return error;
}

Fault claim_socket(const char* path, int& fd) {
  struct stat old {};
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (call_by_name(connect, fd, path) == 0 || errno == EAGAIN) return Fault::socket_in_use;
  if (errno == ECONNREFUSED && lstat(path, &old) == 0 && S_ISSOCK(old.st_mode)) unlink(path);
  // The mode of a socket without a name is that of the file which bind() makes.
  const bool bound = fchmod(fd, 0600) == 0 && call_by_name(bind, fd, path) == 0 && listen(fd, SOMAXCONN) == 0;
  return bound ? Fault::none : Fault::socket_not_possible;
}

void notify_systemd(std::string_view state) {
  const char* const name = getenv("NOTIFY_SOCKET");
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (name != nullptr && call_by_name(connect, fd, name) == 0) send(fd, state.data(), state.size(), MSG_NOSIGNAL);
  close(fd);
}

Peer* admit(std::span<Peer> peers, int fd, std::span<const std::uint32_t> allowed_uids, std::uint64_t now) {
  ucred user{};
  socklen_t size = sizeof user;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0 || std::ranges::count(allowed_uids, user.uid) == 0)
    return nullptr;
  const auto standing = [](const Peer& p) { return p.makes_room() ? p.standing : kNever; };
  Peer& place = *std::ranges::min_element(peers, {}, standing);
  if (!place.makes_room()) return nullptr;
  if (place.fd >= 0) place.close();
  place.fd = fd;
  place.standing = now;
  return &place;
}

void Peer::close() {
  ::close(fd);
  free(message);
  if (unsent != nullptr) munmap(unsent, unsent_room);
  *this = {};
}

bool Peer::receive(std::span<std::uint8_t>& whole, std::uint64_t now) {
  const std::size_t wanted = message == nullptr ? sizeof length : load_u32(length);
  const ssize_t n = recv(fd, (message == nullptr ? length : message) + received, wanted - received, 0);
  dead = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  received += static_cast<std::size_t>(std::max(n, ssize_t{0}));
  if (received < wanted) return false;
  received = 0;
  if (message == nullptr) {
    const std::uint32_t announced = load_u32(length);
    whole = {};
    if (announced == 0 || announced > wire::kMaxMessageBytes) return true;
    message = static_cast<std::uint8_t*>(malloc(announced));
    dead = message == nullptr;
    return !dead && receive(whole, now);
  }
  whole = {message, wanted};
  message = nullptr;
  standing = kSpoke + now;
  return true;
}

// Pages that no fork of us gets: a supervisor has no use for what waits for peers.
static bool grow(std::uint8_t*& pages, std::size_t before, std::size_t after) {
  void* const grown = pages == nullptr
                          ? mmap(nullptr, after, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                          : mremap(pages, before, after, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) return false;
  pages = static_cast<std::uint8_t*>(grown);
  return madvise(grown, after, MADV_DONTFORK) == 0;
}

std::uint8_t* Peer::reserve(std::size_t size) {
  if (dead || leaving) return nullptr;
  if (size > unsent_room - unsent_end) {
    if (sent > 0) memmove(unsent, unsent + sent, waiting());
    unsent_end -= sent;
    sent = 0;
    const std::size_t room = std::max({unsent_room, std::bit_ceil(unsent_end + size), kPageBytes});
    if (room > unsent_room) {
      dead = room > kMaxUnsent || !grow(unsent, unsent_room, room);
      if (dead) return nullptr;
    }
    unsent_room = room;
  }
  return unsent + unsent_end;
}

void Peer::send(Bytes head, Bytes tail) {
  std::uint8_t* const room = reserve(head.size() + tail.size());
  if (room == nullptr) return;
  std::ranges::copy(tail, std::ranges::copy(head, room).out);
  unsent_end += head.size() + tail.size();
}

void Peer::send_unsent() {
  const ssize_t n = waiting() > 0 ? ::send(fd, unsent + sent, waiting(), MSG_NOSIGNAL) : 0;
  if (n > 0) sent += static_cast<std::size_t>(n);
  if (waiting() == 0) sent = unsent_end = 0;
  dead = dead || (n < 0 && errno != EAGAIN && errno != EINTR) || (leaving && waiting() == 0);
}

}  // namespace x0x
