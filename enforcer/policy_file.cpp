#include "enforcer/policy_file.hpp"

namespace x0x {

constexpr std::size_t kVersionDigits = 20, kStateBytes = kVersionDigits + 1 + 64 + 1;  // `version digest`, a line

static Fault check_file(int fd, std::uint64_t max_bytes, struct stat& file) {
  if (fd < 0)
    return errno == ENOENT || errno == ENOTDIR ? Fault::missing : errno == ELOOP ? Fault::symlink : Fault::unreadable;
  if (fstat(fd, &file) != 0) return Fault::unreadable;
  if (!S_ISREG(file.st_mode)) return Fault::not_a_file;
  if (file.st_uid != 0 && file.st_uid != geteuid()) return Fault::wrong_owner;
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Fault::wrong_mode;
  return static_cast<std::uint64_t>(file.st_size) > max_bytes ? Fault::too_large : Fault::none;
}

static bool is_audience(const BlobView& table, std::string_view node) {
  for (std::uint32_t i = 0; i < table.header().audience_count; ++i)
    if (node == table.item(i).c_str()) return true;
  return table.header().audience_count == 0;
}

static Fault check_window(const BlobView& table, std::uint64_t now_secs) {
  if (table.header().not_before == 0 && table.header().expires == 0) return Fault::none;
  if (now_secs < kEarliestClock) return Fault::bad_clock;
  if (now_secs < table.header().not_before) return Fault::not_yet_valid;
  return table.header().expires != 0 && now_secs >= table.header().expires ? Fault::expired : Fault::none;
}

static bool is_state(const char* line, std::size_t size) {
  return size == kStateBytes && strspn(line, "0123456789") == kVersionDigits && line[kVersionDigits] == ' ' &&
         strspn(line + kVersionDigits + 1, "0123456789abcdef") == 64 && line[size - 1] == '\n';
}

Result<Bytes> read_file(const char* path, std::uint64_t max_bytes) {
  struct stat file {};
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  Fault fault = check_file(fd, max_bytes, file);
  const std::size_t size = static_cast<std::size_t>(file.st_size);
  void* memory = MAP_FAILED;
  if (fault == Fault::none)
    memory = mmap(nullptr, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  std::uint8_t* const bytes = static_cast<std::uint8_t*>(memory);
  std::size_t got = 0;
  for (ssize_t n = 1; memory != MAP_FAILED && got < size && n > 0;
       got += static_cast<std::size_t>(std::max(n, ssize_t{0})))
    n = read(fd, bytes + got, size - got);
  if (fault == Fault::none && (memory == MAP_FAILED || got != size || mprotect(memory, size + 1, PROT_READ) != 0))
    fault = Fault::unreadable;
  if (fd >= 0) close(fd);
  return fault == Fault::none ? Result<Bytes>(Bytes(bytes, size)) : fault;
}

Fault check_version(const char* state_dir, std::uint64_t version, const Digest& digest, bool record) {
  char hex[65], path[PATH_MAX], fresh[PATH_MAX], line[kStateBytes + 1];
  sodium_bin2hex(hex, sizeof hex, digest.bytes, sizeof digest.bytes);
  snprintf(line, sizeof line, "%020llu %s\n", static_cast<unsigned long long>(version), hex);
  snprintf(path, sizeof path, "%s/highest", state_dir);
  if (snprintf(fresh, sizeof fresh, "%s/highest.new", state_dir) >= PATH_MAX) return Fault::state_not_writable;

  const Result<Bytes> old = read_file(path, kStateBytes);
  if (!old.ok() && old.fault() != Fault::missing) return Fault::state_damaged;
  if (old.ok()) {
    const char* const highest = reinterpret_cast<const char*>(old.value().data());
    if (!is_state(highest, old.value().size())) return Fault::state_damaged;
    const int order = memcmp(line, highest, kVersionDigits);
    if (order < 0) return Fault::lower_version;
    if (order == 0) return strcmp(line, highest) == 0 ? Fault::none : Fault::same_version_other_content;
  }
  if (!record) return access(state_dir, W_OK | X_OK) == 0 ? Fault::none : Fault::state_not_writable;
  const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool durable = fd >= 0 && dir >= 0 && write(fd, line, kStateBytes) == kStateBytes && fsync(fd) == 0 &&
                       rename(fresh, path) == 0 && fsync(dir) == 0;
  for (const int opened : {fd, dir}) close(opened);
  return durable ? Fault::none : Fault::state_not_writable;
}

Result<Policy> load_policy(Node& node) {
  node.blamed = node.policy_path;
  const Result<Bytes> file = read_file(node.policy_path, blob::kMaxFileBytes);
  if (!file.ok()) return file.fault();
  node.blamed = node.trust_path;
  const Result<Bytes> trust = read_file(node.trust_path, kMaxTrustFileBytes);
  if (!trust.ok()) return trust.fault() == Fault::too_large ? Fault::trust_too_large : trust.fault();
  const Result<TrustedKeys> keys = parse_trust(trust.value());
  if (!keys.ok()) return keys.fault();
  node.blamed = node.policy_path;
  const Result<VerifiedBytes> verified = verify({file.value()}, keys.value());
  if (!verified.ok()) return verified.fault();
  const Result<BlobView> opened = BlobView::open(verified.value());
  if (!opened.ok()) return opened.fault();
  const Policy policy{opened.value(), digest_of(verified.value().payload())};
  Fault fault = check_window(policy.table, node.now_secs);
  if (fault == Fault::none && !is_audience(policy.table, node.name)) fault = Fault::wrong_audience;
  if (fault == Fault::none)
    fault = check_version(node.state_dir, policy.table.header().policy_version, policy.digest, node.record);
  if (fault == Fault::state_damaged || fault == Fault::state_not_writable) node.blamed = node.state_dir;
  return fault == Fault::none ? Result<Policy>(policy) : fault;
}

}  // namespace x0x
