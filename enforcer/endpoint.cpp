#include "enforcer/endpoint.hpp"

#include "enforcer/system.hpp"

namespace x0x {

namespace {

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

bool passed_by_systemd() {
  const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
  int listening = 0;
  socklen_t size = sizeof listening;
  return pid != nullptr && count != nullptr && atol(pid) == getpid() && strcmp(count, "1") == 0 &&
         getsockopt(kActivatedSocket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening == 1 &&
         fcntl(kActivatedSocket, F_SETFD, FD_CLOEXEC) == 0 && fcntl(kActivatedSocket, F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

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

}  // namespace x0x
