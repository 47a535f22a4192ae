// x0x-enforcer: start-up, read as a checklist. Anything wrong is one line on stderr and status 1; there is no
// configuration file and no way to start with less. Shown by tests/e2e/startup_test.py, one case per fault.
#include "enforcer/policy_file.hpp"
#include "enforcer/server.hpp"

using namespace x0x;

constexpr char kUsage[] =
#include "usage.txt"
    ;

struct Arguments {
  Node node{"/etc/x0x/exec-policy.x0xp", "/etc/x0x/policy-trust.pub", "/var/lib/x0x"};
  const char *socket = "/run/x0x/enforcer.sock", *uid = "";
  std::uint32_t uids[64] = {geteuid()};
  std::size_t uid_count = 0;
  int check = 0, doctor = 0, version = 0, help = 0, explicit_policy = 0;
};

static bool add_uid(Arguments& a) {
  char* end = nullptr;
  const unsigned long long number = strtoull(a.uid, &end, 10);
  if (a.uid[0] < '0' || a.uid[0] > '9' || *end != '\0' || number >= 0xffffffff || a.uid_count == 64) return false;
  a.uids[a.uid_count++] = static_cast<std::uint32_t>(number);
  return true;
}

static bool parse(int argc, char** argv, Arguments& a) {
  const char** const texts[] = {&a.node.policy_path, &a.node.trust_path, &a.node.state_dir,
                                &a.socket,           &a.node.name,       &a.uid};
  const option options[] = {{"policy", 1, nullptr, 0}, {"trust", 1, nullptr, 1},    {"state", 1, nullptr, 2},
                            {"socket", 1, nullptr, 3}, {"node", 1, nullptr, 4},     {"allow-uid", 1, nullptr, 5},
                            {"check", 0, &a.check, 1}, {"doctor", 0, &a.doctor, 1}, {"version", 0, &a.version, 1},
                            {"help", 0, &a.help, 1},   {nullptr, 0, nullptr, 0}};
  for (int which = 0, c; (c = getopt_long(argc, argv, "", options, &which)) != -1;) {
    if (c == '?') return false;
    if (optarg != nullptr) *texts[which] = optarg;
    if (which == 0) a.explicit_policy = 1;
    if (which == 5 && !add_uid(a)) return false;
  }
  a.uid_count = std::max<std::size_t>(a.uid_count, 1);
  if (optind < argc) fprintf(stderr, "%s: there are options only, and `%s` is none\n", argv[0], argv[optind]);
  return optind == argc;
}

static int refuse(const char* where, Fault fault) {
  fprintf(stderr, "x0x-enforcer: %s: %s: %s\n", where, fault_name(fault), fault_message(fault));
  return 1;
}

static bool gains_privilege() {
  struct stat self {};
  return getauxval(AT_SECURE) != 0 || stat("/proc/self/exe", &self) != 0 || (self.st_mode & (S_ISUID | S_ISGID)) != 0;
}

static void describe(const char* path, const BlobView& table, const Digest& digest) {
  const blob::Header& h = table.header();
  char hex[65], expiry[40] = "\"never";
  if (h.expires != 0) Json(expiry).write("%", Time{h.expires * 1000});
  sodium_bin2hex(hex, sizeof hex, digest.bytes, sizeof digest.bytes);
  printf("exec: %s\npolicy: %s\nname: %s\n", table.enabled() ? "enabled" : "disabled by the policy", path,
         table.text(h.name).present() ? table.text(h.name).c_str() : "(none)");
  printf("version: %llu\ndigest: %s\nexpires: %.24s\nentries: %u\ncommands: %u\n",
         static_cast<unsigned long long>(h.policy_version), hex, expiry + 1, h.entry_count, h.rule_count);
}

static int doctor(const Arguments& a, const Result<Policy>& policy, bool absent, const char* audit_path) {
  const Fault audit = check_audit(audit_path);
  const KernelFeatures kernel = probe_features();
  const auto yes_no = [](bool yes) { return yes ? "yes" : "no"; };
  if (policy.ok())
    describe(a.node.policy_path, policy.value().table, policy.value().digest);
  else
    printf("exec: disabled\npolicy: %s: %s: %s\n", a.node.blamed, fault_name(policy.fault()),
           fault_message(policy.fault()));
  printf("socket: %s: %s\naudit log: %s: %s\n", a.socket,
         probe_socket(a.socket) == 0 ? "an enforcer listens" : "nobody listens", audit_path,
         audit == Fault::none ? "writable" : fault_message(audit));
  printf("kernel: Landlock ABI %d (`writable` needs %d), seccomp %s, child lists %s, cgroup %s\n", kernel.landlock_abi,
         kMinLandlockAbi, yes_no(kernel.seccomp), yes_no(kernel.child_lists),
         find_delegated_cgroup() >= 0 ? "delegated" : "not delegated");
  printf("running as: %s, uid %u\n", geteuid() == 0 ? "root" : "an ordinary user", geteuid());
  return (policy.ok() || absent) && audit == Fault::none && kernel.child_lists ? 0 : 1;
}

int main(int argc, char** argv) {
  if (gains_privilege()) return refuse(argv[0], Fault::setuid);
  Arguments a;
  const bool valid = parse(argc, argv, a);
  if (!valid || a.help != 0) return fputs(kUsage, valid ? stdout : stderr) >= 0 && valid ? 0 : 2;
  if (a.version != 0) return puts("x0x-enforcer " X0X_VERSION) < 0 ? 1 : 0;
  const bool activated = close_inherited();
  umask(027);
  reset_signals();
  mallopt(M_MMAP_THRESHOLD, 64 << 10);  // what large messages took is given back
  if (sodium_init() < 0) return 1;

  a.node.now_secs = milliseconds(CLOCK_REALTIME) / 1000;
  a.node.record = a.check == 0 && a.doctor == 0;
  const Result<Policy> policy = load_policy(a.node);
  const BlobView& table = policy.value().table;  // without a policy an empty one
  const Bytes digest = policy.ok() ? Bytes(policy.value().digest.bytes) : Bytes{};
  const bool absent = policy.fault() == Fault::missing && a.node.blamed == a.node.policy_path && a.explicit_policy == 0;
  const char* const audit_path =
      policy.ok() ? table.text(table.header().audit_log_path).c_str() : "/var/log/x0x/exec.log";
  if (a.doctor != 0) return doctor(a, policy, absent, audit_path);
  if (!policy.ok() && !absent) return refuse(a.node.blamed, policy.fault());
  if (!probe_features().child_lists) return refuse("/proc", Fault::no_child_lists);
  if (a.check != 0) {
    const Fault fault = check_audit(audit_path);
    return fault == Fault::none ? 0 : refuse(audit_path, fault);
  }

  // The log is ours before the socket is: of two that start at once, one must not take the other's socket and then give
  // up for want of the log.
  if (!activated && probe_socket(a.socket) == 0) return refuse(a.socket, Fault::socket_in_use);
  alignas(4096) static char queue[kAuditQueueBytes];
  static char home[PATH_MAX] = "HOME=/";
  static Audit audit;
  const Fault opened = audit.open(audit_path, queue);
  if (opened != Fault::none) return refuse(audit_path, opened);
  int listener = kActivatedSocket;
  const Fault claimed = activated ? Fault::none : claim_socket(a.socket, listener);
  if (claimed != Fault::none) return refuse(a.socket, claimed);
  audit.record("policy_loaded", kPolicyLoaded, table.enabled(), a.node.policy_path, Hex{digest},
               table.text(table.header().name).bytes, table.header().policy_version);
  if (const char* own = getenv("HOME"); own != nullptr && strlen(own) < sizeof home - 5)
    memcpy(home + 5, own, strlen(own) + 1);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0);  // commands have our uid: none may trace us or a supervisor, or open our memory
  const ServerConfig config{table,  digest,   a.node.policy_path,    home,
                            &audit, listener, {a.uids, a.uid_count}, milliseconds(CLOCK_REALTIME)};
  const int status = audit.flush() ? serve(config) : refuse(audit_path, Fault::audit_not_writable);
  close(listener);                                                  // closed already, unless it never served
  if (!activated && probe_socket(a.socket) != 0) unlink(a.socket);  // another may have the name by now
  return status;
}
