// x0x-enforcer: start-up, read as a checklist. Anything wrong is one line on stderr and status 1; there is no
// configuration file and no way to start with less. Shown by tests/e2e/startup_test.py, one case per fault.
#include "enforcer/policy_file.hpp"
#include "enforcer/server.hpp"

using namespace x0x;

constexpr char kUsage[] =
#include "usage.txt"
    ;
constexpr char kDefaultPolicy[] = "/etc/x0x/exec-policy.x0xp";  // the only one that may be missing

struct Arguments {
  Node node{kDefaultPolicy, "/etc/x0x/policy-trust.pub", "/var/lib/x0x"};
  const char *socket = "/run/x0x/enforcer.sock", *uid = "";
  std::uint32_t uids[64] = {geteuid()};
  std::size_t uid_count = 0;
  int check = 0, doctor = 0, version = 0, help = 0;
};

static bool add_uid(Arguments& a) {
  char* end = nullptr;
  const unsigned long uid = strtoul(a.uid, &end, 10);
  const bool number = a.uid[0] >= '0' && a.uid[0] <= '9' && *end == '\0';
  if (!number || uid >= UINT32_MAX || a.uid_count == std::size(a.uids)) return false;
  a.uids[a.uid_count++] = static_cast<std::uint32_t>(uid);
  return true;
}

static bool parse(int argc, char** argv, Arguments& a) {
  const char** const texts[] = {&a.node.policy_path, &a.node.trust_path, &a.node.state_dir,
                                &a.socket,           &a.node.name,       &a.uid};
  const option options[] = {{"policy", 1, nullptr, 0}, {"trust", 1, nullptr, 0},    {"state", 1, nullptr, 0},
                            {"socket", 1, nullptr, 0}, {"node", 1, nullptr, 0},     {"allow-uid", 1, nullptr, 'u'},
                            {"check", 0, &a.check, 1}, {"doctor", 0, &a.doctor, 1}, {"version", 0, &a.version, 1},
                            {"help", 0, &a.help, 1},   {nullptr, 0, nullptr, 0}};
  for (int which = 0, c; (c = getopt_long(argc, argv, "", options, &which)) != -1;) {
    if (c == '?') return false;
    if (optarg != nullptr) *texts[which] = optarg;
    if (c == 'u' && !add_uid(a)) return false;
  }
  a.uid_count = std::max<std::size_t>(a.uid_count, 1);
  if (optind < argc) fprintf(stderr, "%s: there are options only, and `%s` is none\n", argv[0], argv[optind]);
  return optind == argc;
}

// Whether this forbids the start; if so, it has been said.
static bool refused(const char* path, Fault fault) {
  if (fault != Fault::none)
    fprintf(stderr, "x0x-enforcer: %s: %s: %s\n", path, fault_name(fault), fault_message(fault));
  return fault != Fault::none;
}

static bool gains_privilege() {
  struct stat self {};
  return getauxval(AT_SECURE) != 0 || stat("/proc/self/exe", &self) != 0 || (self.st_mode & (S_ISUID | S_ISGID)) != 0;
}

static void describe(const Arguments& a, const Policy& policy, const char* audit_path) {
  const blob::Header& h = policy.table.header();
  const Text name = policy.table.text(h.name);
  const Fault audit = check_audit(audit_path);
  char digest[65], expires[40] = "\"never";  // after a quote, as a time is written
  if (h.expires != 0) Json(expires).write("%", Time{h.expires * 1000});
  sodium_bin2hex(digest, sizeof digest, policy.digest.bytes, sizeof policy.digest.bytes);
  if (policy.fault != Fault::none)
    printf("exec: disabled\npolicy: %s: %s: %s\n", policy.blamed, fault_name(policy.fault),
           fault_message(policy.fault));
  else
    printf("exec: %s\npolicy: %s\nname: %s\nversion: %ju\ndigest: %s\nexpires: %.24s\nentries: %u\ncommands: %u\n",
           policy.table.enabled() ? "enabled" : "disabled by the policy", a.node.policy_path,
           name.present() ? name.c_str() : "(none)", h.policy_version, digest, expires + 1, h.entry_count,
           h.rule_count);
  printf("socket: %s: %s\n", a.socket, probe_socket(a.socket) == 0 ? "an enforcer listens" : "nobody listens");
  printf("audit log: %s: %s\n", audit_path, audit == Fault::none ? "writable" : fault_message(audit));
  printf("kernel: Landlock ABI %d (`writable` needs %d), seccomp %s, child lists %s, cgroup %s\n",
         std::max(landlock_abi(), 0), kMinLandlockAbi, prctl(PR_GET_SECCOMP) >= 0 ? "yes" : "no",
         has_child_lists() ? "yes" : "no", find_delegated_cgroup() >= 0 ? "delegated" : "not delegated");
  printf("running as: %s, uid %u\n", geteuid() == 0 ? "root" : "an ordinary user", geteuid());
}

int main(int argc, char** argv) {
  if (gains_privilege() && refused(argv[0], Fault::setuid)) return 1;
  Arguments a;
  const bool valid = parse(argc, argv, a);
  if (!valid || a.help != 0) return fputs(kUsage, valid ? stdout : stderr) >= 0 && valid ? 0 : 2;
  if (a.version != 0) return puts("x0x-enforcer " X0X_VERSION) < 0 ? 1 : 0;
  const bool activated = close_inherited();
  umask(027);
  reset_signals();
  mallopt(M_MMAP_THRESHOLD, 64 << 10);  // what large messages took is given back
  if (sodium_init() < 0) return 1;

  a.node.record = a.check == 0 && a.doctor == 0;
  const Policy policy = load_policy(a.node);
  const bool absent = policy.fault == Fault::missing && policy.blamed == kDefaultPolicy;
  const BlobView& table = policy.table;
  const Text log = table.text(table.header().audit_log_path);
  const char* const audit_path = log.present() ? log.c_str() : "/var/log/x0x/exec.log";
  if (a.doctor != 0) describe(a, policy, audit_path);
  if (!absent && refused(policy.blamed, policy.fault)) return 1;
  if (!has_child_lists() && refused("/proc", Fault::no_child_lists)) return 1;
  if (!a.node.record) return refused(audit_path, check_audit(audit_path)) ? 1 : 0;

  // The log is ours before the socket is: of two that start at once, one must not take the other's socket and then give
  // up for want of the log.
  if (!activated && probe_socket(a.socket) == 0 && refused(a.socket, Fault::socket_in_use)) return 1;
  alignas(4096) static char queue[kAuditQueueBytes];
  static Audit audit;
  if (refused(audit_path, audit.open(audit_path, queue))) return 1;
  int listener = kActivatedSocket;
  if (!activated && refused(a.socket, claim_socket(a.socket, listener))) return 1;
  const Bytes digest = policy.fault == Fault::none ? Bytes(policy.digest.bytes) : Bytes{};
  audit.append(audit.begin("policy_loaded")
                   .write(kPolicyLoaded, table.enabled(), a.node.policy_path, Hex{digest},
                          table.text(table.header().name).bytes, table.header().policy_version));
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0);  // commands have our uid: none may trace us or a supervisor, or open our memory
  const ServerConfig config{
      table, digest, a.node.policy_path, &audit, listener, {a.uids, a.uid_count}, milliseconds(CLOCK_REALTIME)};
  const int status = !audit.flush() && refused(audit_path, Fault::audit_not_writable) ? 1 : serve(config);
  close(listener);                                                  // closed already, unless it never served
  if (!activated && probe_socket(a.socket) != 0) unlink(a.socket);  // another may have the name by now
  return status;
}
