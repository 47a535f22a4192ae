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

// A line that ends in `~` is what a crash left of a record.
std::string_view last_record(std::string_view lines, std::uint64_t& torn) {
  for (torn = 0; !lines.empty();) {
    lines.remove_suffix(1);  // its newline
    std::string_view line = lines;
    line.remove_prefix(lines.rfind('\n') + 1);  // npos + 1 is 0
    if (!line.ends_with('~')) return line;
    torn += line.size();
    lines.remove_suffix(line.size());
  }
  return {};
}

Fault Audit::open(const char* path, std::span<char> queue) {
  path_ = path;
  queue_ = queue;
  const int fd = ::open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
  const Fault fault = attach(fd);
  if (fd != fd_) close(fd);
  return fault;
}

Fault Audit::reopen() {
  flush();  // what belongs to the old file, if it still takes it
  const Fault fault = open(path_, queue_);
  if (fault == Fault::none && used_ < queue_.size() / 4) append(begin("log_reopened"));
  return fault;
}

// The file we have already is simply kept. A record ends in `}` and a newline; whatever a crash left instead is ended
// with `~` and a newline, so no part of a record is ever taken for a whole one.
Fault Audit::attach(int fd) {
  alignas(4096) static char room[kAuditTailBytes + 4096];
  struct stat file = {}, ours = {};
  if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return Fault::audit_not_writable;
  if (fstat(fd_, &ours) == 0 && ours.st_ino == file.st_ino && ours.st_dev == file.st_dev) return Fault::none;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return Fault::audit_in_use;
  const std::size_t size = static_cast<std::size_t>(file.st_size), length = std::min(size, kAuditTailBytes);
  if (pread(fd, room, length, static_cast<off_t>(size - length)) != static_cast<ssize_t>(length))
    return Fault::audit_not_writable;
  const std::string_view end = length > 0 && room[length - 1] != '\n' ? "~\n" : "";
  std::ranges::copy(end, room + length);
  std::uint64_t torn = 0;
  const std::string_view last = last_record({room, length + end.size()}, torn);
  const bool is_record = last.starts_with("{\"seq\":") && last.ends_with('}');
  if (last.data() == nullptr ? length < size : !is_record) return Fault::audit_not_ours;
  if (write(fd, end.data(), end.size()) != static_cast<ssize_t>(end.size())) return Fault::audit_not_writable;
  if (fd_ < 0 && is_record) {
    seq_ = strtoull(last.data() + 7, nullptr, 10) + 1;
    prev_ = digest_of(as_bytes(last));
  }
  madvise(room, sizeof room, MADV_DONTNEED);  // an idle enforcer stays small
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  torn_ = torn;
  written_ = 0;
  stuck_ = false;
  return Fault::none;
}

Json Audit::begin(std::string_view event) const {
  Json record(queue_.subspan(used_));
  record.write(kRecordHead, seq_, Hex{prev_.bytes}, Time{milliseconds(CLOCK_REALTIME)}, event);
  return torn_ > 0 ? record.write(kTornBytes, torn_) : record;
}

void Audit::append(Json record, bool wait) {
  if (record.write("}\n").full()) {
    ++failures_;
    ++unrecorded_;
    degraded_ = waiting_ = true;
    return;
  }
  const Bytes line = as_bytes(record.view());
  prev_ = digest_of(line.first(line.size() - 1));
  used_ += line.size();
  ++seq_;
  torn_ = 0;
  waiting_ = waiting_ || wait;
}

// A file that has been deleted is no log: what is written there counts only when SIGHUP has found another.
bool Audit::write_queue() {
  if (stuck_) return false;
  while (written_ < used_) {
    const ssize_t n = write(fd_, queue_.data() + written_, used_ - written_);
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n > 0) written_ += static_cast<std::size_t>(n);
  }
  struct stat file {};
  return fdatasync(fd_) == 0 && fstat(fd_, &file) == 0 && file.st_nlink > 0;
}

// After a failed fdatasync the kernel forgets which pages it lost, so the same bytes go to the same place once more.
// O_APPEND, which would take them elsewhere, has to wait until the disk works again. Where it cannot be taken off, as
// on a file that may only be appended to, nothing is durable until SIGHUP has found another file.
bool Audit::flush() {
  if (!write_queue()) {
    const off_t back = -static_cast<off_t>(written_);
    if (back < 0 && fcntl(fd_, F_SETFL, 0) == 0 && lseek(fd_, back, SEEK_CUR) >= 0) written_ = 0;
    stuck_ = written_ > 0 && (stuck_ || written_ == used_);
    ++failures_;
    degraded_ = true;
    return false;
  }
  used_ = written_ = 0;
  waiting_ = false;
  if (!degraded_) return true;
  fcntl(fd_, F_SETFL, O_APPEND);
  degraded_ = false;
  append(begin("audit_recovered").write(kAuditRecovered, unrecorded_));
  unrecorded_ = 0;
  return flush();
}

void write_argv(Json& json, Bytes block, bool digest_only) {
  Bytes shown = block.first(std::min(block.size(), digest_only ? 0 : kMaxJsonText));
  while (!shown.empty() && shown.back() != 0) shown = shown.first(shown.size() - 1);  // whole tokens
  const bool whole = shown.size() == block.size();
  if (!digest_only) {
    json.write(",'argv':[");
    for (const char* format = "%"; !shown.empty(); format = ",%") json.write(format, next_token(shown));
    json.write(whole ? "]" : "],'argv_truncated':true");
  }
  if (!whole) json.write(",'argv_blake2b':%", Hex{digest_of(block).bytes});
}

}  // namespace x0x
