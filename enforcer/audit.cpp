#include "enforcer/audit.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace x0x {

namespace {
std::uint64_t milliseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}
}  // namespace

std::uint64_t unix_milliseconds() { return milliseconds(CLOCK_REALTIME); }
std::uint64_t boot_milliseconds() { return milliseconds(CLOCK_BOOTTIME); }

Fault check_audit(const char* path) {
  struct stat file {};
  if (lstat(path, &file) == 0)
    return S_ISREG(file.st_mode) && access(path, R_OK | W_OK) == 0 ? Fault::none : Fault::audit_not_writable;
  char directory[4096];
  const char* const name = std::strrchr(path, '/');
  const int length = name != nullptr ? static_cast<int>(name + 1 - path) : 0;
  std::snprintf(directory, sizeof directory, "%.*s.", length, path);
  return access(directory, W_OK | X_OK) == 0 ? Fault::none : Fault::audit_not_writable;
}

int Audit::open_file() const {
  return ::open(path_, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
}

Fault Audit::open(const char* path, std::span<char> queue) {
  path_ = path;
  queue_ = queue;
  return attach(open_file());
}

Fault Audit::attach(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return Fault::audit_not_writable;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return Fault::audit_in_use;
  const std::span<char> room = queue_.last(kAuditTailBytes);
  const off_t limit = static_cast<off_t>(room.size()), length = file.st_size < limit ? file.st_size : limit;
  if (pread(fd, room.data(), static_cast<std::size_t>(length), file.st_size - length) != length)
    return Fault::audit_not_writable;

  // A record ends in `}` and a newline; whatever a crash left instead is ended with `~` and a newline, so no
  // part of a record is ever taken for a whole one.
  std::string_view text(room.data(), static_cast<std::size_t>(length)), line;
  const bool unended = !text.empty() && text.back() != '\n';
  torn_ = unended ? 1 : 0;
  for (bool torn = unended; !text.empty(); torn = false) {
    if (text.back() == '\n') text.remove_suffix(1);
    line = text;
    line.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
    if (!torn && line.ends_with('}')) break;
    torn_ += line.size();
    text.remove_suffix(line.size());
  }
  if (text.empty() ? length < file.st_size : !line.starts_with("{\"seq\":")) return Fault::audit_not_ours;
  if (fd_ < 0 && !text.empty()) {
    seq_ = std::strtoull(line.data() + 7, nullptr, 10) + 1;
    prev_ = digest_of(as_bytes(line));
  }
  if (unended) {
    std::memmove(queue_.data() + 2, queue_.data(), used_);
    std::memcpy(queue_.data(), "~\n", 2);
    used_ += 2;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  return Fault::none;
}

Fault Audit::reopen() {
  flush();  // what belongs to the old file, if it still takes it
  struct stat before {
  }, now{};
  const int fd = open_file();
  Fault fault = Fault::none;
  if (fstat(fd_, &before) != 0 || fstat(fd, &now) != 0 || before.st_ino != now.st_ino || before.st_dev != now.st_dev)
    fault = attach(fd);
  if (fd >= 0 && fd != fd_) close(fd);
  if (fault != Fault::none) return fault;
  written_ = 0;
  record("log_reopened");
  return Fault::none;
}

Json& Audit::begin(std::string_view event) {
  record_ = Json(queue_.subspan(used_, queue_.size() - used_ - 1));
  record_.begin('{').fields("seq", seq_, "prev", Hex{prev_.bytes}, "ts", Time{unix_milliseconds()}, "event", event);
  return torn_ > 0 ? record_.fields("torn_bytes", torn_) : record_;
}

void Audit::finish(bool wait) {
  if (record_.end('}').full()) {
    ++failures_;
    degraded_ = waiting_ = true;
    return;
  }
  prev_ = digest_of(as_bytes(record_.view()));
  used_ += record_.view().size();
  queue_[used_++] = '\n';
  ++seq_;
  torn_ = 0;
  waiting_ = waiting_ || wait;
}

// After a failed fdatasync the kernel forgets which pages it lost, so the same bytes go to the same place
// once more.
bool Audit::write_queue() {
  if (unsynced_) {
    const off_t start = lseek(fd_, 0, SEEK_CUR) - static_cast<off_t>(written_);
    fcntl(fd_, F_SETFL, O_NONBLOCK);  // without O_APPEND
    const bool again = pwrite(fd_, queue_.data(), written_, start) == static_cast<ssize_t>(written_);
    fcntl(fd_, F_SETFL, O_NONBLOCK | O_APPEND);
    if (!again) return false;
  }
  while (written_ < used_) {
    const ssize_t n = write(fd_, queue_.data() + written_, used_ - written_);
    if (n <= 0 && errno != EINTR) return false;
    if (n > 0) written_ += static_cast<std::size_t>(n);
  }
  unsynced_ = fdatasync(fd_) != 0;
  return !unsynced_;
}

bool Audit::flush() {
  if (!write_queue()) {
    ++failures_;
    degraded_ = true;
    return false;
  }
  used_ = written_ = 0;
  waiting_ = false;
  if (!degraded_) return true;
  degraded_ = false;
  record("audit_recovered", "unrecorded", unrecorded_);
  unrecorded_ = 0;
  return flush();
}

void write_argv(Json& json, std::span<const Bytes> argv, Bytes block, bool digest_only) {
  std::size_t shown = 0;
  if (!digest_only) {
    json.key("argv").begin('[');
    for (const Bytes token : argv.first(argv.size() < blob::kMaxArgc ? argv.size() : blob::kMaxArgc)) {
      if (shown + token.size() >= kAuditArgvBytes) break;
      shown += token.size() + 1;
      json.value(token);
    }
    json.end(']');
    if (shown != block.size()) json.fields("argv_truncated", true);
  }
  if (shown != block.size()) json.fields("argv_blake2b", Hex{digest_of(block).bytes});
}

}  // namespace x0x
