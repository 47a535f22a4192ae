// x0x-enforcer: start-up, read as a checklist. Anything wrong is one line on stderr and status 1; there is no
// configuration file and no way to start with less. Shown by tests/e2e/startup_test.cpp, one case per fault.
#include <fcntl.h>
#include <getopt.h>
#include <sodium.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "enforcer/policy_file.hpp"
#include "enforcer/server.hpp"

namespace x0x {

namespace {

constexpr char kUsage[] =
    "usage: x0x-enforcer [options]\n"
    "  --policy FILE    signed decision table (/etc/x0x/exec-policy.x0xp)\n"
    "  --trust FILE     minisign public keys that may sign it (/etc/x0x/policy-trust.pub)\n"
    "  --state DIR      where the highest version is kept (/var/lib/x0x)\n"
    "  --socket FILE    where to listen (/run/x0x/enforcer.sock)\n"
    "  --node NAME      this node's name, for policies with an audience\n"
    "  --allow-uid N    user who may connect, repeatable (the one who runs this)\n"
    "  --check          do all of start-up but serve, then stop\n"
    "  --doctor         say in words how things stand\n"
    "  --version, --help\n";

constexpr int kActivatedSocket = 3;

struct Arguments {
  Node node{"/etc/x0x/exec-policy.x0xp", "/etc/x0x/policy-trust.pub", "/var/lib/x0x"};
  const char* socket = "/run/x0x/enforcer.sock";
  std::uint32_t uids[64];
  std::size_t uid_count = 0;
  bool explicit_policy = false, check = false, doctor = false;
  int exit_status = -1;  // not -1: stop here
};

bool parse_uid(const char* text, std::uint32_t& uid) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  uid = static_cast<std::uint32_t>(number);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && number < 0xffffffff;
}

Arguments parse_arguments(int argc, char** argv) {
  static const option kOptions[] = {
      {"policy", 1, nullptr, 'p'}, {"trust", 1, nullptr, 't'},  {"state", 1, nullptr, 's'},
      {"socket", 1, nullptr, 'l'}, {"node", 1, nullptr, 'n'},   {"allow-uid", 1, nullptr, 'u'},
      {"check", 0, nullptr, 'c'},  {"doctor", 0, nullptr, 'd'}, {"version", 0, nullptr, 'v'},
      {"help", 0, nullptr, 'h'},   {nullptr, 0, nullptr, 0}};
  Arguments a;
  for (int c; a.exit_status < 0 && (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (c == 'p') a.explicit_policy = true;
    if (c == 'p') a.node.policy_path = optarg;
    if (c == 't') a.node.trust_path = optarg;
    if (c == 's') a.node.state_dir = optarg;
    if (c == 'l') a.socket = optarg;
    if (c == 'n') a.node.name = optarg;
    if (c == 'c') a.check = true;
    if (c == 'd') a.doctor = true;
    if (c == 'v' || c == 'h')
      a.exit_status = std::fputs(c == 'h' ? kUsage : "x0x-enforcer " X0X_VERSION "\n", stdout) < 0 ? 1 : 0;
    if (c == '?' || (c == 'u' && (a.uid_count == 64 || !parse_uid(optarg, a.uids[a.uid_count++]))))
      a.exit_status = 2;
  }
  if (a.exit_status < 0 && optind != argc) a.exit_status = 2;
  if (a.exit_status == 2) std::fputs(kUsage, stderr);
  if (a.uid_count == 0) a.uids[a.uid_count++] = geteuid();
  return a;
}

int refuse(const char* where, Fault fault) {
  std::fprintf(stderr, "x0x-enforcer: %s: %s: %s\n", where, fault_name(fault), fault_message(fault));
  return 1;
}

bool gains_privilege() {
  struct stat self {};
  return getauxval(AT_SECURE) != 0 || stat("/proc/self/exe", &self) != 0 ||
         (self.st_mode & (S_ISUID | S_ISGID)) != 0;
}

// systemd's own agreement: one socket, as descriptor 3.
bool is_activated() {
  const char *pid = std::getenv("LISTEN_PID"), *count = std::getenv("LISTEN_FDS");
  int listening = 0;
  socklen_t size = sizeof listening;
  return pid != nullptr && count != nullptr && std::atol(pid) == getpid() && std::strcmp(count, "1") == 0 &&
         getsockopt(kActivatedSocket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening == 1 &&
         fcntl(kActivatedSocket, F_SETFD, FD_CLOEXEC) == 0 &&
         fcntl(kActivatedSocket, F_SETFL, O_NONBLOCK) == 0;
}

// Descriptors 0-2 exist, and what else was inherited does not.
void close_inherited(bool activated) {
  close_range(kActivatedSocket + (activated ? 1 : 0), ~0u, 0);
  for (int fd = 0; fd >= 0 && fd <= 2;) fd = open("/dev/null", O_RDWR | O_CLOEXEC);
}

// A socket file nobody listens on is replaced; anything else in its place is left alone.
Fault claim_socket(const char* path, int& fd, bool only_look) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return Fault::socket_not_possible;
  std::strcpy(address.sun_path, path);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connect(fd, name, sizeof address) == 0 || errno == EAGAIN) return Fault::socket_in_use;
  if (only_look) return Fault::none;
  struct stat old {};
  if (errno == ECONNREFUSED && lstat(path, &old) == 0 && S_ISSOCK(old.st_mode)) unlink(path);
  umask(0177);
  const bool bound = bind(fd, name, sizeof address) == 0 && listen(fd, SOMAXCONN) == 0;
  umask(027);
  return bound ? Fault::none : Fault::socket_not_possible;
}

Fault check_audit(const char* path) {
  const int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat file {};
  if (fd >= 0)
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) ? Fault::none : Fault::audit_not_writable;
  char directory[4096];
  const char* slash = std::strrchr(path, '/');
  if (errno != ENOENT || slash == nullptr || slash - path >= 4095) return Fault::audit_not_writable;
  std::snprintf(directory, sizeof directory, "%.*s", static_cast<int>(slash - path + 1), path);
  return access(directory, W_OK | X_OK) == 0 ? Fault::none : Fault::audit_not_writable;
}

bool somebody_listens(const char* path) {
  int fd = -1;
  const bool listens = claim_socket(path, fd, true) == Fault::socket_in_use;
  close(fd);
  return listens;
}

void print_policy(const char* path, const Policy& policy) {
  const BlobView& table = policy.table;
  char digest[65], expiry[40] = "\"never";
  if (table.expires() != 0) Json(expiry).value(Time{table.expires() * 1000});
  sodium_bin2hex(digest, sizeof digest, policy.digest.bytes, sizeof policy.digest.bytes);
  std::printf("exec: %s\npolicy: %s\n", table.enabled() ? "enabled" : "disabled by the policy", path);
  std::printf("name: %s\nversion: %llu\n", table.name().present() ? table.name().c_str() : "(none)",
              static_cast<unsigned long long>(table.policy_version()));
  std::printf("digest: %s\nexpires: %.24s\n", digest, expiry + 1);
  std::printf("entries: %u\ncommands: %u\n", table.entry_count(), table.rule_count());
}

int doctor(const Arguments& a, const Result<Policy>& policy, bool absent, const char* audit_path) {
  const Fault audit = check_audit(audit_path);
  const KernelFeatures kernel = probe_features();
  if (policy.ok())
    print_policy(a.node.policy_path, policy.value());
  else
    std::printf("exec: disabled\npolicy: %s: %s: %s\n", a.node.blamed, fault_name(policy.fault()),
                fault_message(policy.fault()));
  std::printf("socket: %s: %s\n", a.socket,
              somebody_listens(a.socket) ? "an enforcer listens" : "nobody listens");
  std::printf("audit log: %s: %s\n", audit_path, audit == Fault::none ? "writable" : fault_message(audit));
  std::printf("kernel: Landlock ABI %d (`writable` needs %d), seccomp %s, cgroup %s\n", kernel.landlock_abi,
              kMinLandlockAbi, kernel.seccomp ? "yes" : "no",
              find_delegated_cgroup() >= 0 ? "delegated" : "not delegated");
  std::printf("running as: %s, uid %u\n", geteuid() == 0 ? "root" : "an ordinary user", geteuid());
  return (policy.ok() || absent) && audit == Fault::none ? 0 : 1;
}

int start(int argc, char** argv) {
  if (gains_privilege()) return refuse(argv[0], Fault::setuid);
  Arguments a = parse_arguments(argc, argv);
  if (a.exit_status >= 0) return a.exit_status;
  const bool activated = is_activated();
  close_inherited(activated);
  umask(027);
  if (sodium_init() < 0) return 1;

  a.node.now_secs = unix_milliseconds() / 1000;
  a.node.record = !a.check && !a.doctor;
  const Result<Policy> policy = load_policy(a.node);
  const bool absent =
      policy.fault() == Fault::missing && a.node.blamed == a.node.policy_path && !a.explicit_policy;
  const char* audit_path =
      policy.ok() ? policy.value().table.audit_log_path().c_str() : "/var/log/x0x/exec.log";
  if (a.doctor) return doctor(a, policy, absent, audit_path);
  if (!policy.ok() && !absent) return refuse(a.node.blamed, policy.fault());
  Fault fault = a.check ? check_audit(audit_path) : Fault::none;
  if (a.check) return fault == Fault::none ? 0 : refuse(audit_path, fault);

  int listener = kActivatedSocket;
  if (!activated) fault = claim_socket(a.socket, listener, false);
  if (fault != Fault::none) return refuse(a.socket, fault);
  static char queue[kAuditQueueBytes];
  static Audit audit;
  fault = audit.open(audit_path, queue);
  const bool enabled = policy.ok() && policy.value().table.enabled();
  if (fault == Fault::none)
    audit.record("policy_loaded", "enabled", enabled, "loaded_from", a.node.policy_path, "policy",
                 Hex{policy.value().digest.bytes}, "version",
                 absent ? 0 : policy.value().table.policy_version());
  if (fault == Fault::none && !audit.flush()) fault = Fault::audit_not_writable;

  static char home[4096] = "HOME=/";
  if (const char* own = std::getenv("HOME"); own != nullptr && std::strlen(own) < sizeof home - 5)
    std::strcpy(home + 5, own);
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  int status = 1;
  if (fault == Fault::none)
    status = serve({policy.ok() ? &policy.value().table : nullptr,
                    policy.value().digest,
                    a.node.policy_path,
                    home,
                    &audit,
                    listener,
                    {a.uids, a.uid_count},
                    unix_milliseconds()});
  else
    refuse(audit_path, fault);
  if (!activated) unlink(a.socket);
  return status;
}

}  // namespace

}  // namespace x0x

int main(int argc, char** argv) {
  return x0x::start(argc, argv);
}
