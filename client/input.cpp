#include "client/input.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client/connection.hpp"

namespace x0x::client {

namespace {

constexpr std::size_t kReadBytes = 64u << 10;

std::string read_descriptor(int fd, const std::string& name) {
  std::string bytes;
  while (true) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kReadBytes);
    const ssize_t n = ::read(fd, bytes.data() + size, kReadBytes);
    const int error = errno;
    bytes.resize(size + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n == 0) return bytes;
    if (n < 0 && error != EINTR) throw Failure(fmt::format("cannot read `{}`: {}", name, std::strerror(error)));
    if (bytes.size() > wire::kMaxMessageBytes)
      throw Failure(fmt::format("`{}` is too large: a request may have {} bytes with everything in it", name,
                                wire::kMaxMessageBytes));
  }
}

}  // namespace

std::string read_input(const std::string& file) {
  if (file == "-") return read_descriptor(STDIN_FILENO, "stdin");
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) throw Failure(fmt::format("cannot open `{}`: {}", file, std::strerror(errno)));
  try {
    std::string bytes = read_descriptor(fd, file);
    ::close(fd);
    return bytes;
  } catch (...) {
    ::close(fd);
    throw;
  }
}

void check_size(const Session& session, const Request& request) {
  const Message message = encode_request(session, request);
  if (fits(message)) return;
  const std::size_t over = message.size() - wire::kLengthBytes - wire::kMaxMessageBytes;
  throw Failure(fmt::format("the {} too large: {} bytes over what a request may have ({})",
                            request.stdin_bytes ? "input is" : "command's tokens are", over, wire::kMaxMessageBytes));
}

}  // namespace x0x::client
