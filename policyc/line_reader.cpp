#include "policyc/line_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "policyc/text.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

constexpr std::size_t kFirstBuffer = 1u << 16;

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("cannot read {}: {}", quote(path, 200), std::strerror(error)));
}

}  // namespace

LineReader::LineReader(const std::string& path, std::size_t max_line)
    : path_(path == "-" ? "<stdin>" : path),
      file_(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)),
      max_line_(max_line),
      buffer_(kFirstBuffer) {
  struct stat status {};
  if (!file_ || fstat(file_.get(), &status) != 0) fail(path_, errno);
  if (S_ISDIR(status.st_mode)) fail(path_, EISDIR);
  if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  modified_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

bool LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  for (;;) {
    const ssize_t got = read(file_.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    end_ += static_cast<std::size_t>(got);
    return got > 0;
  }
}

std::string_view LineReader::start() {
  while (unread().find('\n') == std::string_view::npos && unread().size() <= max_line_ && fill()) {
  }
  return unread();
}

bool LineReader::next(Line& line) {
  std::size_t searched = 0, length = unread().find('\n');
  while (length == std::string_view::npos && unread().size() <= max_line_) {
    searched = unread().size();
    if (!fill()) break;
    length = unread().find('\n', searched);
  }
  if (unread().empty()) return false;
  line = {unread().substr(0, length), length != std::string_view::npos, ++number_, offset_};
  begin_ += line.text.size() + (line.ended ? 1 : 0);
  offset_ += line.text.size() + (line.ended ? 1 : 0);
  if (line.ended || line.text.size() <= max_line_) return true;

  // Longer than any line may be: keep its start, pass over the rest.
  long_line_ = line.text;
  while (!line.ended && fill()) {
    const std::size_t newline = unread().find('\n');
    line.ended = newline != std::string_view::npos;
    const std::size_t passed = line.ended ? newline + 1 : unread().size();
    begin_ += passed;
    offset_ += passed;
  }
  line.text = long_line_;
  return true;
}

}  // namespace x0x::policyc
