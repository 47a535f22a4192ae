#include "enforcer/policy_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace x0x {

namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Fault check_file(int fd, std::uint64_t max_bytes, struct stat& file) {
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR ? Fault::missing : errno == ELOOP ? Fault::symlink : Fault::unreadable;
  if (fstat(fd, &file) != 0) return Fault::unreadable;
  if (!S_ISREG(file.st_mode)) return Fault::not_a_file;
  if (file.st_uid != 0 && file.st_uid != geteuid()) return Fault::wrong_owner;
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Fault::wrong_mode;
  return static_cast<std::uint64_t>(file.st_size) > max_bytes ? Fault::too_large : Fault::none;
}

bool is_audience(const BlobView& table, std::string_view node) {
  for (std::uint32_t i = 0; i < table.audience_count(); ++i)
    if (node == table.item(i).c_str()) return true;
  return table.audience_count() == 0;
}

Fault check_window(const BlobView& table, std::uint64_t now_secs) {
  if (table.not_before() == 0 && table.expires() == 0) return Fault::none;
  if (now_secs < kEarliestClock) return Fault::bad_clock;
  if (now_secs < table.not_before()) return Fault::not_yet_valid;
  return table.expires() != 0 && now_secs >= table.expires() ? Fault::expired : Fault::none;
}

}  // namespace

Result<Bytes> map_file(const char* path, std::uint64_t max_bytes) {
  struct stat file {};
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  Fault fault = check_file(fd, max_bytes, file);
  const std::size_t size = static_cast<std::size_t>(file.st_size);
  const int copy = memfd_create("x0x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  std::size_t copied = 0;
  for (ssize_t n = 1; fault == Fault::none && copied < size && n > 0; copied += n > 0 ? static_cast<std::size_t>(n) : 0)
    n = sendfile(copy, fd, nullptr, size - copied);
  void* memory = nullptr;
  if (fault == Fault::none && size > 0) {
    if (copied == size && fcntl(copy, F_ADD_SEALS, kSeals) == 0)
      memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, copy, 0);
    if (memory == nullptr || memory == MAP_FAILED) fault = Fault::unreadable;
  }
  close(copy);
  if (fd >= 0) close(fd);
  if (fault != Fault::none) return fault;
  return Bytes(static_cast<const std::uint8_t*>(memory), size);
}

Fault check_version(const char* state_dir, std::uint64_t version, const Digest& digest, bool record) {
  char hex[65], path[4096], fresh[4096], line[96], old_line[97] = {}, old_hex[65] = {};
  sodium_bin2hex(hex, sizeof hex, digest.bytes, sizeof digest.bytes);
  const auto length = static_cast<std::size_t>(
      std::snprintf(line, sizeof line, "%llu %s\n", static_cast<unsigned long long>(version), hex));
  if (std::snprintf(path, sizeof path, "%s/highest", state_dir) >= 4000) return Fault::state_not_writable;
  std::snprintf(fresh, sizeof fresh, "%s/highest.new", state_dir);

  const Result<Bytes> old = map_file(path, sizeof old_line - 1);
  if (!old.ok() && old.fault() != Fault::missing) return Fault::state_damaged;
  if (old.ok()) {
    unsigned long long highest = 0;
    char again[97];
    if (!old.value().empty()) std::memcpy(old_line, old.value().data(), old.value().size());
    if (std::sscanf(old_line, "%llu %64[0-9a-f]", &highest, old_hex) != 2) return Fault::state_damaged;
    std::snprintf(again, sizeof again, "%llu %s\n", highest, old_hex);
    if (std::strcmp(again, old_line) != 0 || std::strlen(old_hex) != 64) return Fault::state_damaged;
    if (version < highest) return Fault::lower_version;
    if (version == highest) return std::strcmp(hex, old_hex) == 0 ? Fault::none : Fault::same_version_other_content;
  }
  if (!record) return access(state_dir, W_OK | X_OK) == 0 ? Fault::none : Fault::state_not_writable;
  const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool durable = fd >= 0 && dir >= 0 && write(fd, line, length) == static_cast<ssize_t>(length) &&
                       fsync(fd) == 0 && rename(fresh, path) == 0 && fsync(dir) == 0;
  close(fd);
  close(dir);
  return durable ? Fault::none : Fault::state_not_writable;
}

Result<Policy> load_policy(Node& node) {
  node.blamed = node.policy_path;
  const Result<Bytes> file = map_file(node.policy_path, blob::kMaxFileBytes);
  if (!file.ok()) return file.fault();
  node.blamed = node.trust_path;
  const Result<Bytes> trust = map_file(node.trust_path, kMaxTrustFileBytes);
  if (!trust.ok()) return trust.fault() == Fault::too_large ? Fault::trust_too_large : trust.fault();
  const Result<TrustedKeys> keys = parse_trust(trust.value());
  if (!keys.ok()) return keys.fault();
  node.blamed = node.policy_path;
  const Result<VerifiedBytes> verified = verify({file.value()}, keys.value());
  if (!verified.ok()) return verified.fault();
  const Result<BlobView> opened = BlobView::open(verified.value());
  if (!opened.ok()) return opened.fault();
  const Policy policy{opened.value(), digest_of(verified.value().payload())};
  if (const Fault fault = check_window(policy.table, node.now_secs); fault != Fault::none) return fault;
  if (!is_audience(policy.table, node.name)) return Fault::wrong_audience;
  const Fault fault = check_version(node.state_dir, policy.table.policy_version(), policy.digest, node.record);
  if (fault == Fault::state_damaged || fault == Fault::state_not_writable) node.blamed = node.state_dir;
  if (fault != Fault::none) return fault;
  return policy;
}

}  // namespace x0x
