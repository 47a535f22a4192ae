#include "client/sink.hpp"

#include <fcntl.h>
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

Sink::~Sink() {
  if (own_fd_ >= 0) ::close(own_fd_);
}

// Opening again asks for the right to write once more, so what was handed to us for reading only must not come out
// writable.
void Sink::open_for_ourselves() {
  tried_own_ = true;
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) error_ = EBADF;
  if (error_ != 0) return;
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  own_fd_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void Sink::write(std::string_view bytes) {
  if (bytes.empty() || error_ != 0) return;
  at_line_start_ = bytes.back() == '\n';
  if (fd_ >= 0 && buffer_.empty()) bytes.remove_prefix(write_now(bytes));
  buffer_ += bytes;
}

void Sink::line(std::string_view text) {
  const bool cut_in = !at_line_start_ && kind_ == Kind::other && ::isatty(fd_) == 1;
  std::string whole(cut_in ? 1 : 0, '\n');
  whole.append(text).push_back('\n');
  write(whole);
}

void Sink::pump() {
  if (pending() > 0) buffer_.erase(0, write_now(buffer_));
}

std::size_t Sink::write_now(std::string_view bytes) {
  const bool may_block = kind_ == Kind::pipe || kind_ == Kind::other;
  if (may_block && !tried_own_) open_for_ourselves();
  if (error_ != 0) return bytes.size();
  const bool asks = may_block && own_fd_ < 0;
  const std::size_t most = !asks ? bytes.size() : kind_ == Kind::pipe ? PIPE_BUF : kOtherBytes;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t size = std::min(bytes.size() - done, most);
    const char* const from = bytes.data() + done;
    if (asks && !takes_bytes(fd_)) break;
    const ssize_t n = kind_ == Kind::socket ? ::send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                            : ::write(own_fd_ >= 0 ? own_fd_ : fd_, from, size);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      return bytes.size();
    }
  }
  return done;
}

}  // namespace x0x::client
