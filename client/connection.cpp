#include "client/connection.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "enforcer/cursor.hpp"

namespace x0x::client {

namespace {

// Room for an answer to a short command, and for a stream of output once there is one: memory is touched only when
// needed.
constexpr std::size_t kLeastReceiveBytes = 4u << 10, kMostReceiveBytes = 256u << 10;
constexpr int kAnswerTimeoutMs = 10'000;

std::string explain_connect(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return fmt::format(
          "no enforcer socket at `{}` (is x0x-enforcer running? `--socket` or `X0X_SOCKET` names another)", path);
    case ECONNREFUSED:
      return fmt::format("nothing listens on `{}` (x0x-enforcer has stopped; start it again)", path);
    case EACCES:
    case EPERM:
      return fmt::format(
          "permission denied on `{}` (the socket belongs to another user; run as that user, or see "
          "`--allow-uid` in x0x-enforcer(8))",
          path);
    case ENOTSOCK:
    case EPROTOTYPE:
      return fmt::format("`{}` is not an enforcer's socket", path);
    default:
      return fmt::format("cannot connect to `{}`: {}", path, std::strerror(error));
  }
}

}  // namespace

int connect_to(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty()) throw Failure("the socket path is empty");
  if (socket_path.size() >= sizeof address.sun_path)
    throw Failure(fmt::format("the socket path `{}` is too long: {} bytes, a path may have {}", socket_path,
                              socket_path.size(), sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  // Connecting may wait its turn behind other clients; Ctrl-C still ends the program here.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw Failure(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(fd);
    throw Failure(explain_connect(socket_path, error));
  }
  return fd;
}

Connection::~Connection() { ::close(fd_); }

void Connection::send(const Message& message) {
  outbox_.insert(outbox_.end(), message.begin(), message.end());
  flush();
}

void Connection::flush() {
  std::size_t sent = 0;
  while (sent < outbox_.size() && !deaf_) {
    const ssize_t n = ::send(fd_, outbox_.data() + sent, outbox_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
      sent += static_cast<std::size_t>(n);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      deaf_ = true;
  }
  if (deaf_)
    outbox_.clear();
  else
    outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<std::ptrdiff_t>(sent));
}

void Connection::receive() {
  if (inbox_start_ > 0) {
    std::copy(inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_start_),
              inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_end_), inbox_.begin());
    inbox_end_ -= inbox_start_;
    inbox_start_ = 0;
  }
  if (inbox_end_ == inbox_.size() || (filled_ && inbox_.size() < kMostReceiveBytes))
    inbox_.resize(std::max(kLeastReceiveBytes, 4 * inbox_.size()));
  ssize_t n = 0;
  do n = ::recv(fd_, inbox_.data() + inbox_end_, inbox_.size() - inbox_end_, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  closed_ = n == 0 || (n < 0 && errno != EAGAIN);
  if (n > 0) inbox_end_ += static_cast<std::size_t>(n);
  filled_ = inbox_end_ == inbox_.size();
}

std::optional<Bytes> Connection::next() {
  const Bytes waiting = Bytes(inbox_).subspan(inbox_start_, inbox_end_ - inbox_start_);
  Cursor cursor(waiting);
  const std::uint32_t length = cursor.u32();
  if (cursor.failed()) return std::nullopt;
  if (length == 0 || length > wire::kMaxMessageBytes)
    throw Failure(
        fmt::format("lost the enforcer: it announced a message of {} bytes (is it an x0x-enforcer?)", length));
  const Bytes message = cursor.take(length);
  if (cursor.failed()) return std::nullopt;
  inbox_start_ += wire::kLengthBytes + length;
  return message;
}

std::string ask(Connection& connection, std::uint8_t kind) {
  connection.send(encode_question(kind));
  while (true) {
    if (const std::optional<Bytes> message = connection.next()) {
      std::string_view document;
      const Malformed fault = decode_document(*message, kind, document);
      if (fault != Malformed::none)
        throw Failure(fmt::format("cannot read the enforcer's answer: {}", describe(fault)));
      return std::string(document);
    }
    if (connection.closed())
      throw Failure(
          "the enforcer closed the connection without an answer (your user may not be among its "
          "`--allow-uid`)");
    pollfd waiting{connection.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, kAnswerTimeoutMs) == 0) throw Failure("the enforcer does not answer");
    connection.flush();
    connection.receive();
  }
}

}  // namespace x0x::client
