#include "enforcer/policy_file.hpp"

namespace x0x {

constexpr std::size_t kVersionDigits = 20, kStateBytes = kVersionDigits + 1 + 64 + 1;  // `version digest`, a line

static Result<Bytes> read_opened(int fd, std::size_t max_bytes) {
  struct stat file {};
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return Fault::missing;
  if (fd < 0 && errno == ELOOP) return Fault::symlink;
  if (fstat(fd, &file) != 0) return Fault::unreadable;
  if (!S_ISREG(file.st_mode)) return Fault::not_a_file;
  if (file.st_uid != 0 && file.st_uid != geteuid()) return Fault::wrong_owner;
  if ((file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Fault::wrong_mode;
  const std::size_t size = std::min(static_cast<std::size_t>(file.st_size), max_bytes + 1);
  void* const copy = mmap(nullptr, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (copy == MAP_FAILED || read(fd, copy, size) != static_cast<ssize_t>(size) ||
      mprotect(copy, size + 1, PROT_READ) != 0)
    return Fault::unreadable;
  return Bytes(static_cast<const std::uint8_t*>(copy), size);
}

// The content of a file, and a NUL after it, in read-only memory that is never given back. Of one that is larger than
// it may be, one byte more than that: who looks at the content knows by which fault to refuse it.
static Result<Bytes> read_file(const char* path, std::size_t max_bytes) {
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const Result<Bytes> content = read_opened(fd, max_bytes);
  close(fd);
  return content;
}

static bool is_state(Bytes file) {
  const char* const line = reinterpret_cast<const char*>(file.data());
  return file.size() == kStateBytes && strspn(line, "0123456789") == kVersionDigits && line[kVersionDigits] == ' ' &&
         strspn(line + kVersionDigits + 1, "0123456789abcdef") == 64 && file.back() == '\n';
}

// Compares with the highest version ever loaded and records a higher one durably.
static Fault check_version(const Node& node, std::uint64_t version, const Digest& digest) {
  char hex[65], path[PATH_MAX], fresh[PATH_MAX], line[kStateBytes + 1];
  sodium_bin2hex(hex, sizeof hex, digest.bytes, sizeof digest.bytes);
  snprintf(line, sizeof line, "%020ju %s\n", version, hex);
  snprintf(path, sizeof path, "%s/highest", node.state_dir);
  if (snprintf(fresh, sizeof fresh, "%s/highest.new", node.state_dir) >= PATH_MAX) return Fault::state_not_writable;

  const Result<Bytes> old = read_file(path, kStateBytes);
  if (old.ok() ? !is_state(old.value()) : old.fault() != Fault::missing) return Fault::state_damaged;
  const char* const highest = old.ok() ? reinterpret_cast<const char*>(old.value().data()) : "";  // below any version
  const int order = strncmp(line, highest, kVersionDigits);
  if (order < 0) return Fault::lower_version;
  if (order == 0) return strcmp(line, highest) == 0 ? Fault::none : Fault::same_version_other_content;
  if (!node.record) return access(node.state_dir, W_OK | X_OK) == 0 ? Fault::none : Fault::state_not_writable;
  const int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int dir = open(node.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool durable = fd >= 0 && dir >= 0 && write(fd, line, kStateBytes) == kStateBytes && fsync(fd) == 0 &&
                       rename(fresh, path) == 0 && fsync(dir) == 0;
  for (const int opened : {fd, dir}) close(opened);
  return durable ? Fault::none : Fault::state_not_writable;
}

// What the header asks for: a time, a node, and a version that only goes up.
static Fault check_header(const Node& node, const BlobView& table, const Digest& digest) {
  const blob::Header& h = table.header();
  if ((h.not_before != 0 || h.expires != 0) && node.now_secs < kEarliestClock) return Fault::bad_clock;
  if (node.now_secs < h.not_before) return Fault::not_yet_valid;
  if (h.expires != 0 && node.now_secs >= h.expires) return Fault::expired;
  bool meant = h.audience_count == 0;
  for (std::uint32_t i = 0; i < h.audience_count; ++i) meant = meant || strcmp(node.name, table.item(i).c_str()) == 0;
  return meant ? check_version(node, h.policy_version, digest) : Fault::wrong_audience;
}

Policy load_policy(const Node& node) {
  const Result<Bytes> file = read_file(node.policy_path, blob::kMaxFileBytes);
  if (!file.ok()) return {node.policy_path, file.fault()};
  const Result<TrustedKeys> keys = read_file(node.trust_path, kMaxTrustFileBytes).then(parse_trust);
  if (!keys.ok()) return {node.trust_path, keys.fault()};
  const Result<BlobView> table = verify({file.value()}, keys.value()).then(BlobView::open);
  if (!table.ok()) return {node.policy_path, table.fault()};
  const Digest digest = digest_of(table.value().payload());
  const Fault fault = check_header(node, table.value(), digest);
  const bool about_state = fault == Fault::state_damaged || fault == Fault::state_not_writable;
  if (fault != Fault::none) return {about_state ? node.state_dir : node.policy_path, fault};
  return {nullptr, Fault::none, table.value(), digest};
}

}  // namespace x0x
