#include "client/sink.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace x0x::client {

namespace {

// A pipe that polls writable takes PIPE_BUF bytes without blocking. A terminal promises less.
constexpr std::size_t kOtherBytes = 512;

bool takes_bytes(int fd) {
  pollfd waiting{fd, POLLOUT, 0};
  return ::poll(&waiting, 1, 0) > 0;
}

}  // namespace

Sink::Sink(int fd) : fd_(fd) {
  struct stat status {};
  if (fd < 0) return;
  if (::fstat(fd, &status) != 0)
    kind_ = Kind::other;
  else if (S_ISREG(status.st_mode))
    kind_ = Kind::file;
  else if (S_ISFIFO(status.st_mode))
    kind_ = Kind::pipe;
  else
    kind_ = S_ISSOCK(status.st_mode) ? Kind::socket : Kind::other;
}

void Sink::write(std::string_view bytes) {
  if (bytes.empty() || error_ != 0) return;
  buffer_ += bytes;
  at_line_start_ = bytes.back() == '\n';
  pump();
}

void Sink::line(std::string_view text) {
  const bool cut_in = !at_line_start_ && kind_ == Kind::other && ::isatty(fd_) == 1;
  std::string whole(cut_in ? 1 : 0, '\n');
  whole.append(text).push_back('\n');
  write(whole);
}

void Sink::pump() {
  while (pending() > 0) {
    const std::size_t most = kind_ == Kind::pipe ? PIPE_BUF : kind_ == Kind::other ? kOtherBytes : pending();
    const std::size_t size = std::min(pending(), most);
    const char* const from = buffer_.data() + start_;
    if ((kind_ == Kind::pipe || kind_ == Kind::other) && !takes_bytes(fd_)) break;
    const ssize_t n =
        kind_ == Kind::socket ? ::send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_, from, size);
    if (n >= 0) {
      start_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      start_ = buffer_.size();
    }
  }
  if (fd_ < 0) return;
  buffer_.erase(0, start_);
  start_ = 0;
}

}  // namespace x0x::client
