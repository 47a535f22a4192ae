// What a rule takes away from its command: resources, places to write, the network.
//
// Each function says false with errno when the kernel cannot do all of it, and leaves it to the caller not to go on.
// Shown by tests/enforcer/sandbox_test.cpp.
#include "enforcer/spawn.hpp"

namespace x0x {

constexpr std::uint64_t kTruncate = 1u << 14, kIoctlDevice = 1u << 15;  // newer than the headers of Debian 12
// All that make, move or remove: the bits from REMOVE_DIR to REFER. Devices are made nowhere: root could write to a
// whole disk through one.
constexpr std::uint64_t kDirectoryWrites = kTruncate - LANDLOCK_ACCESS_FS_REMOVE_DIR;
constexpr std::uint64_t kMakeDevice = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

static int landlock_abi() {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0ul, LANDLOCK_CREATE_RULESET_VERSION));
}

// The kernel refuses rights of directories on anything else. Descriptors are left to execve to close.
static bool allow_below(int ruleset, const char* path, std::uint64_t file_writes) {
  landlock_path_beneath_attr rule{};
  rule.parent_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  if (rule.parent_fd < 0 || fstat(rule.parent_fd, &info) != 0) return false;
  if (S_ISLNK(info.st_mode)) return errno = ELOOP, false;
  rule.allowed_access = S_ISDIR(info.st_mode) ? file_writes | (kDirectoryWrites & ~kMakeDevice) : file_writes;
  return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

// And never a core file.
bool limit_resources(const Options& o) {
  const rlimit no_core{0, 0};
  bool ok = setrlimit(RLIMIT_CORE, &no_core) == 0;
  const auto limit = [&ok](auto which, std::uint64_t most) {
    const rlimit both{most, most};
    if (most != 0) ok = ok && setrlimit(which, &both) == 0;
  };
  limit(RLIMIT_CPU, o.limit_cpu_secs);
  limit(RLIMIT_AS, o.limit_memory_bytes);
  limit(RLIMIT_FSIZE, o.limit_file_bytes);
  limit(RLIMIT_NOFILE, o.limit_open_files);
  limit(RLIMIT_NPROC, o.limit_processes);
  return ok;
}

// Landlock: only these paths, what is below them, and /dev/null can be written; reading and executing stay as they are.
// Mode, owner, times and extended attributes of a file are not writes to Landlock: permissions guard those. A path that
// ends in a symbolic link is refused, because whoever may replace it would choose what is writable.
bool limit_writes(const char* const* paths) {
  const int abi = landlock_abi();
  if (abi < kMinLandlockAbi) return errno = EOPNOTSUPP, false;
  const std::uint64_t file_writes = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | (abi >= 5 ? kIoctlDevice : 0);
  const std::uint64_t handled = file_writes | kDirectoryWrites;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
  bool ok = ruleset >= 0 && allow_below(ruleset, "/dev/null", file_writes);
  for (; ok && *paths != nullptr; ++paths) ok = allow_below(ruleset, *paths, file_writes);
  return ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, field))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_K | BPF_JEQ, value, yes, no)
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)

// seccomp: no socket but AF_UNIX, by no way in: neither io_uring, nor another process's descriptors, nor the 32-bit and
// x32 system calls (whose use ends the process).
bool limit_network() {
#if defined(__x86_64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  // Jumps count from the next line. Both architectures are little-endian, so the first word of an argument is its low
  // half, and the kernel looks at no more of a domain than that.
  sock_filter program[] = {
      LOAD(arch),
      IF_EQUAL(kArchitecture, 0, 10),  // else end
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_K | BPF_JGE, 0x40000000, 8, 0),  // x32: end
      IF_EQUAL(SYS_socket, 3, 0),                             // look at the domain
      IF_EQUAL(SYS_socketpair, 2, 0),                         // look at the domain
      IF_EQUAL(SYS_io_uring_setup, 4, 0),                     // refuse
      IF_EQUAL(SYS_pidfd_getfd, 3, 2),                        // refuse, else allow
      LOAD(args),
      IF_EQUAL(AF_UNIX, 0, 1),  // allow, else refuse
      ANSWER(SECCOMP_RET_ALLOW),
      ANSWER(SECCOMP_RET_ERRNO | EACCES),
      ANSWER(SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog filter{std::size(program), program};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

KernelFeatures probe_features() {
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return {std::max(landlock_abi(), 0), syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0,
          access("/proc/thread-self/children", R_OK) == 0};
}

}  // namespace x0x
