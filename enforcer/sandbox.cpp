// What a rule takes away from its command: resources, places to write, the network.
//
// Each function says false with errno when the kernel cannot do all of it, and leaves it to the caller not to go on.
// Shown by tests/enforcer/sandbox_test.cpp.
#include "enforcer/spawn.hpp"

namespace x0x {

constexpr std::uint64_t kTruncate = 1u << 14, kControlDevice = 1u << 15;  // newer than the headers of Debian 12
constexpr std::uint64_t kFileWrites = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kControlDevice;
// All that make, move or remove: the bits from REMOVE_DIR to REFER. Devices are made nowhere: root could write to a
// whole disk through one.
constexpr std::uint64_t kDirectoryWrites = kTruncate - LANDLOCK_ACCESS_FS_REMOVE_DIR;
constexpr std::uint64_t kMakeDevice = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

int landlock_abi() {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0ul, LANDLOCK_CREATE_RULESET_VERSION));
}

// The kernel refuses rights of directories on anything else. Descriptors are left to execve to close.
static bool allow_below(int ruleset, const char* path, std::uint64_t writes) {
  landlock_path_beneath_attr rule{};
  struct stat info;
  errno = ELOOP;  // unless something else is wrong
  rule.parent_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (rule.parent_fd < 0 || fstat(rule.parent_fd, &info) != 0 || S_ISLNK(info.st_mode)) return false;
  rule.allowed_access = writes & (S_ISDIR(info.st_mode) ? ~kMakeDevice : kFileWrites);
  return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

// And never a core file.
bool limit_resources(const Options& o) {
  const rlimit none{0, 0};
  const auto limit = [](auto which, std::uint64_t most) {
    const rlimit both{most, most};
    return most == 0 || setrlimit(which, &both) == 0;
  };
  return setrlimit(RLIMIT_CORE, &none) == 0 && limit(RLIMIT_CPU, o.limit_cpu_secs) &&
         limit(RLIMIT_AS, o.limit_memory_bytes) && limit(RLIMIT_FSIZE, o.limit_file_bytes) &&
         limit(RLIMIT_NOFILE, o.limit_open_files) && limit(RLIMIT_NPROC, o.limit_processes);
}

// Landlock: only these paths, what is below them, and /dev/null can be written; reading and executing stay as they are.
// Mode, owner, times and extended attributes of a file are not writes to Landlock: permissions guard those. A path that
// ends in a symbolic link is refused, because whoever may replace it would choose what is writable. A kernel that does
// not know all of these writes refuses the ruleset.
bool limit_writes(const BlobView& table, const Options& o) {
  const std::uint64_t writes = (kFileWrites | kDirectoryWrites) - (landlock_abi() < 5 ? kControlDevice : 0);
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &writes, sizeof writes, 0));
  bool ok = ruleset >= 0 && allow_below(ruleset, "/dev/null", writes);
  for (std::uint32_t i = 0; ok && i < o.writable_count; ++i)
    ok = allow_below(ruleset, table.item(o.first_item + o.env_count + i).c_str(), writes);
  return ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
}

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
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 10),  // else end
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 8, 0),          // x32: end
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),          // look at the domain
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 2, 0),      // look at the domain
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 4, 0),  // refuse
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 3, 2),     // refuse, else allow
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1),  // allow, else refuse
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog filter{std::size(program), program};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

}  // namespace x0x
