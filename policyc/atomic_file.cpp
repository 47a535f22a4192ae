#include "policyc/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "policyc/file_handle.hpp"
#include "policyc/secret.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw UserError(fmt::format("cannot write `{}`: {}", path, std::strerror(error)));
}

[[noreturn]] void fail_exists(const std::string& path) {
  throw UserError(fmt::format("`{}` exists already; choose another name or add `--force`", path), kExitRefused);
}

struct Place {
  std::string directory, name;
};

Place split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

void check_target(const FileHandle& directory, const Place& place, const std::string& path, Existing existing) {
  struct stat status {};
  if (fstatat(directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;
    fail(path, errno);
  }
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (S_ISLNK(status.st_mode))
    throw UserError(fmt::format("`{}` is a symbolic link; give the file it points to, or remove the link", path));
  if (!S_ISREG(status.st_mode)) throw UserError(fmt::format("`{}` is not a regular file", path));
  if (existing == Existing::keep) fail_exists(path);
}

// The file under its temporary name; gone with this object unless it got its final one.
class TemporaryFile {
 public:
  TemporaryFile(const FileHandle& directory, const std::string& path, mode_t mode) : directory_(directory) {
    start_crypto();
    name_ = fmt::format(".x0x-{:08x}{:08x}.tmp", randombytes_random(), randombytes_random());
    handle_ =
        FileHandle(openat(directory.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!handle_) fail(path, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!renamed_) unlinkat(directory_.get(), name_.c_str(), 0);
  }

  // True, or false with errno set.
  bool write_all(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t put = write(handle_.get(), bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return fsync(handle_.get()) == 0;
  }

  bool rename_to(const std::string& name, Existing existing) {
    const int from = directory_.get();
    if (existing == Existing::replace) {
      renamed_ = renameat(from, name_.c_str(), from, name.c_str()) == 0;
    } else {
      renamed_ = renameat2(from, name_.c_str(), from, name.c_str(), RENAME_NOREPLACE) == 0;
      // Some file systems cannot; a hard link never replaces, and the temporary name goes with this object.
      if (!renamed_ && errno == EINVAL) return linkat(from, name_.c_str(), from, name.c_str(), 0) == 0;
    }
    return renamed_;
  }

 private:
  const FileHandle& directory_;
  std::string name_;
  FileHandle handle_;
  bool renamed_ = false;
};

}  // namespace

void write_file_atomically(const std::string& path, std::span<const std::uint8_t> bytes, mode_t mode,
                           Existing existing) {
  const Place place = split(path);
  if (path.empty()) fail(path, ENOENT);
  if (path == "-") throw UserError("`-` is not the name of a file; to write one of that name, give `./-`");
  if (place.name.empty() || place.name == "." || place.name == "..") fail(path, EISDIR);
  const FileHandle directory(open(place.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) fail(path, errno);
  check_target(directory, place, path, existing);

  TemporaryFile file(directory, path, mode);
  if (!file.write_all(bytes)) fail(path, errno);
  if (!file.rename_to(place.name, existing)) {
    if (errno == EEXIST) fail_exists(path);
    fail(path, errno);
  }
  // Not every file system lets a directory be flushed; those that do not say so with EINVAL.
  if (fsync(directory.get()) != 0 && errno != EINVAL) fail(path, errno);
}

}  // namespace x0x::policyc
