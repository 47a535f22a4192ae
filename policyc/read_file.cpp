#include "policyc/read_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "policyc/file_handle.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("cannot read `{}`: {}", path, std::strerror(error)));
}

[[noreturn]] void fail_too_large(const std::string& path, std::size_t max_bytes) {
  throw UserError(fmt::format("`{}` is larger than {} bytes", path, max_bytes), kExitRefused);
}

struct OpenFile {
  FileHandle handle;
  std::size_t expected_bytes;  // 0 for a pipe or a device
};

OpenFile open_for_reading(const std::string& path) {
  FileHandle handle(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!handle) fail(path, errno);
  struct stat status {};
  if (fstat(handle.get(), &status) != 0) fail(path, errno);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  return {std::move(handle), S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0};
}

// Fills the buffer as far as the file goes.
std::size_t read_up_to(const FileHandle& file, const std::string& path, std::span<std::uint8_t> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t got = read(file.get(), buffer.data() + filled, buffer.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file = open_for_reading(path);
  if (file.expected_bytes > max_bytes) fail_too_large(path, max_bytes);
  std::vector<std::uint8_t> bytes(file.expected_bytes + 1);  // one more, to see the end of the file
  std::size_t filled = 0;
  while ((filled += read_up_to(file.handle, path, std::span(bytes).subspan(filled))) == bytes.size()) {
    if (filled > max_bytes) fail_too_large(path, max_bytes);
    bytes.resize(std::min(max_bytes + 1, bytes.size() * 2 + 4096));
  }
  bytes.resize(filled);
  return bytes;
}

SecretBytes read_secret_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file = open_for_reading(path);
  SecretBytes bytes(max_bytes + 1);
  const std::size_t filled = read_up_to(file.handle, path, bytes.span());
  if (filled > max_bytes) fail_too_large(path, max_bytes);
  bytes.shorten(filled);
  return bytes;
}

}  // namespace x0x::policyc
