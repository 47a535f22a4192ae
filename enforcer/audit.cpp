#include "enforcer/audit.hpp"

#include "schema/audit_format.hpp"

namespace x0x {

std::uint64_t milliseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

Fault check_audit(const char* path) {
  struct stat file {};
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s", path);
  const bool usable = lstat(path, &file) == 0 ? S_ISREG(file.st_mode) && access(path, R_OK | W_OK) == 0
                                              : access(dirname(directory), W_OK | X_OK) == 0;
  return usable ? Fault::none : Fault::audit_not_writable;
}

// A record ends in `}` and a newline; whatever a crash left instead is ended with `~` and a newline, so no part of a
// record is ever taken for a whole one.
AuditTail find_tail(std::string_view text) {
  AuditTail tail;
  tail.unended = !text.empty() && text.back() != '\n';
  tail.torn = tail.unended ? 1 : 0;  // the `~` to come
  for (bool torn = tail.unended; !text.empty(); torn = false) {
    if (text.back() == '\n') text.remove_suffix(1);
    std::string_view line = text;
    line.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
    if (!torn && !line.ends_with('~')) return tail.record = line, tail;
    tail.torn += line.size();
    text.remove_suffix(line.size());
  }
  return tail;
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
  if (used_ + 2 > queue_.size() - kAuditTailBytes) return Fault::audit_not_writable;  // no room to look at its end
  char* const room = queue_.last(kAuditTailBytes).data();
  const std::size_t size = static_cast<std::size_t>(file.st_size), length = std::min(size, kAuditTailBytes);
  if (pread(fd, room, length, static_cast<off_t>(size - length)) != static_cast<ssize_t>(length))
    return Fault::audit_not_writable;
  const AuditTail tail = find_tail({room, length});
  const bool ours = tail.record.starts_with("{\"seq\":") && tail.record.ends_with('}');
  if (tail.record.data() == nullptr ? length < size : !ours) return Fault::audit_not_ours;
  torn_ = tail.torn;
  if (fd_ < 0 && ours) {
    seq_ = strtoull(tail.record.data() + 7, nullptr, 10) + 1;
    prev_ = digest_of(as_bytes(tail.record));
  }
  if (tail.unended) {
    memmove(queue_.data() + 2, queue_.data(), used_);
    memcpy(queue_.data(), "~\n", 2);
    used_ += 2;
  }
  madvise(room, kAuditTailBytes, MADV_DONTNEED);  // an idle enforcer stays small
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  written_ = 0;
  return Fault::none;
}

Fault Audit::reopen() {
  flush();  // what belongs to the old file, if it still takes it
  struct stat before = {}, now = {};
  const int fd = open_file();
  const bool same =
      fstat(fd_, &before) == 0 && fstat(fd, &now) == 0 && before.st_ino == now.st_ino && before.st_dev == now.st_dev;
  const Fault fault = same ? Fault::none : attach(fd);
  if (fd >= 0 && fd != fd_) close(fd);
  if (fault == Fault::none) record("log_reopened");
  return fault;
}

Json& Audit::begin(std::string_view event) {
  record_ = Json(queue_.subspan(used_, queue_.size() - used_ - 1));
  record_.write(kRecordHead, seq_, Hex{prev_.bytes}, Time{milliseconds(CLOCK_REALTIME)}, event);
  return torn_ > 0 ? record_.write(kTornBytes, torn_) : record_;
}

void Audit::finish(bool wait) {
  if (record_.write("}").full()) {
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

// After a failed fdatasync the kernel forgets which pages it lost, so the same bytes go to the same place once more. A
// file that has been deleted is no log: what is written there counts only when SIGHUP has found another.
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
  struct stat file {};
  unsynced_ = fdatasync(fd_) != 0;
  return !unsynced_ && fstat(fd_, &file) == 0 && file.st_nlink > 0;
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
  record("audit_recovered", kAuditRecovered, unrecorded_);
  unrecorded_ = 0;
  return flush();
}

void write_argv(Json& json, Bytes block, bool digest_only) {
  std::size_t shown = 0;
  if (!digest_only) {
    json.write(",'argv':[");
    for (Bytes rest = block; !rest.empty(); shown = block.size() - rest.size()) {
      const Bytes token = next_token(rest);
      if (block.size() - rest.size() > kAuditArgvBytes) break;
      json.write(shown == 0 ? "%" : ",%", token);
    }
    json.write("]");
    if (shown != block.size()) json.write(",'argv_truncated':true");
  }
  if (shown != block.size()) json.write(",'argv_blake2b':%", Hex{digest_of(block).bytes});
}

}  // namespace x0x
