#include "client/running.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "client/connection.hpp"

namespace x0x::client {

namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// The process that holds the lock, or 0.
pid_t holder(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid > 0 ? lock.l_pid : 0;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string running_directory() {
  const char* const base = std::getenv("XDG_RUNTIME_DIR");
  if (base != nullptr && *base == '/') return std::string(base) + "/x0x-exec";
  std::string own = fmt::format("/dev/shm/x0x-exec-{}", ::geteuid());
  struct stat info {};
  if (::lstat(own.c_str(), &info) != 0) return own;  // open() makes it
  return S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0 ? own : "";
}

void RunningFile::open(const std::string& directory, const RequestId& id) {
  if (directory.empty()) return;
  path_ = directory + "/" + to_uuid(id);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  fd_ = ::open(path_.c_str(), kFlags, 0600);
  if (fd_ < 0 && errno == ENOENT && ::mkdir(directory.c_str(), 0700) == 0) fd_ = ::open(path_.c_str(), kFlags, 0600);
  struct flock lock = whole_file(F_WRLCK);
  if (fd_ >= 0) ::fcntl(fd_, F_SETLK, &lock);
}

RunningFile::~RunningFile() {
  if (fd_ < 0) return;
  ::unlink(path_.c_str());
  ::close(fd_);
}

int cancel_running(const std::string& directory, const std::string& id) {
  RequestId bytes{};
  if (!from_uuid(id, bytes))
    throw Failure("a session's id is 32 hex digits, with or without dashes (`x0x-exec sessions` lists them)");
  if (directory.empty())
    throw Failure(fmt::format(
        "cannot look for the session: `XDG_RUNTIME_DIR` is not set, and `/dev/shm/x0x-exec-{}` is not ours alone "
        "(press Ctrl-C where it runs)",
        ::geteuid()));
  const std::string path = directory + "/" + to_uuid(bytes);
  const std::string nobody =
      fmt::format("no x0x-exec of this user runs session `{}` (only the client that started a session can cancel it)",
                  to_uuid(bytes));
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    if (errno == ENOENT) throw Failure(nobody);
    throw Failure(fmt::format("cannot open `{}`: {}", path, std::strerror(errno)));
  }
  const pid_t pid = holder(file.get());
  if (pid == 0) {
    ::unlink(path.c_str());  // left behind by a process that was killed
    throw Failure(nobody);
  }
  // The descriptor pins the process; asking again proves that it is the holder and not a successor of that
  // number.
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0 || holder(file.get()) != pid) throw Failure(nobody);
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGTERM, nullptr, 0) != 0)
    throw Failure(fmt::format("cannot signal process {}: {}", pid, std::strerror(errno)));
  return pid;
}

}  // namespace x0x::client
