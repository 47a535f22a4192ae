#include "policyc/programs.hpp"

#include <algorithm>
#include <iterator>

namespace x0x::policyc {

namespace {

// In order, so that it can be searched. Interpreters are in the table below as well.
constexpr std::string_view kRunners[] = {
    "ansible",     "ansible-playbook",
    "apt",         "apt-get",
    "ash",         "at",
    "awk",         "bash",
    "batch",       "bpftrace",
    "bundle",      "busybox",
    "bwrap",       "byobu",
    "capsh",       "cargo",
    "cc",          "chroot",
    "chrt",        "cmake",
    "composer",    "cpan",
    "cpio",        "cpulimit",
    "crontab",     "csh",
    "ctr",         "dash",
    "dbus-send",   "deno",
    "dmesg",       "doas",
    "docker",      "dpkg",
    "dvips",       "ed",
    "elvish",      "emacs",
    "env",         "ex",
    "expect",      "fakeroot",
    "find",        "firejail",
    "fish",        "flock",
    "ftp",         "gawk",
    "gcc",         "gdb",
    "gem",         "git",
    "go",          "guile",
    "helm",        "hping",
    "iftop",       "ionice",
    "irb",         "java",
    "jjs",         "jrunscript",
    "jshell",      "julia",
    "knife",       "ksh",
    "kubectl",     "ld.so",
    "less",        "lftp",
    "logrotate",   "logsave",
    "lua",         "luajit",
    "lxc",         "machinectl",
    "mail",        "make",
    "man",         "mawk",
    "mksh",        "more",
    "mosh",        "most",
    "mount",       "msgfilter",
    "mutt",        "mysql",
    "nano",        "nawk",
    "nerdctl",     "nice",
    "ninja",       "nix-shell",
    "nmap",        "node",
    "nodejs",      "nohup",
    "npm",         "npx",
    "nsenter",     "numactl",
    "octave",      "openvpn",
    "osascript",   "parallel",
    "perl",        "perlbug",
    "php",         "pico",
    "pip",         "pipx",
    "pkexec",      "podman",
    "prlimit",     "proot",
    "proxychains", "pry",
    "psql",        "puppet",
    "pwsh",        "python",
    "qemu",        "rake",
    "rbash",       "restic",
    "rlwrap",      "rpm",
    "rsync",       "ruby",
    "run-parts",   "runuser",
    "rvim",        "sash",
    "scp",         "screen",
    "script",      "sed",
    "setarch",     "setpriv",
    "setsid",      "sftp",
    "sg",          "sh",
    "socat",       "socket",
    "split",       "sqlite",
    "ssh",         "start-stop-daemon",
    "stdbuf",      "strace",
    "su",          "sudo",
    "sudoedit",    "svn",
    "systemd-run", "tar",
    "taskset",     "tclsh",
    "tcsh",        "telnet",
    "time",        "timeout",
    "tmux",        "top",
    "toybox",      "tsc",
    "tsx",         "unshare",
    "vagrant",     "valgrind",
    "vi",          "view",
    "vim",         "vimdiff",
    "virsh",       "visudo",
    "watch",       "wget",
    "wish",        "xargs",
    "xonsh",       "xterm",
    "yarn",        "yum",
    "zip",         "zsh",
};

struct Interpreter {
  std::string_view name;
  std::string_view letters;   // short options after which code follows, alone or at the end of a group
  std::string_view words[3];  // long options, and words that act like one
};

constexpr Interpreter kInterpreters[] = {
    {"ash", "c", {}},
    {"bash", "c", {}},
    {"busybox", "c", {}},
    {"csh", "c", {}},
    {"dash", "c", {}},
    {"deno", "", {"eval"}},
    {"emacs", "", {"--eval", "-eval"}},
    {"fish", "c", {"--command"}},
    {"gdb", "", {"-ex", "--eval-command"}},
    {"guile", "c", {}},
    {"julia", "eE", {"--eval", "--print"}},
    {"ksh", "c", {}},
    {"lua", "e", {}},
    {"luajit", "e", {}},
    {"mksh", "c", {}},
    {"node", "ep", {"--eval", "--print"}},
    {"nodejs", "ep", {"--eval", "--print"}},
    {"perl", "eE", {}},
    {"php", "rBE", {"--run"}},
    {"pwsh", "c", {"-Command", "-command", "-EncodedCommand"}},
    {"python", "c", {}},
    {"rbash", "c", {}},
    {"ruby", "e", {}},
    {"sh", "c", {}},
    {"su", "c", {"--command"}},
    {"tcsh", "c", {}},
    {"vim", "c", {}},
    {"xonsh", "c", {}},
    {"zsh", "c", {}},
};

std::string_view without_version(std::string_view program) {
  const std::size_t last = program.find_last_not_of("0123456789.-");
  return last == std::string_view::npos ? program : program.substr(0, last + 1);
}

bool listed(std::string_view program) { return std::binary_search(std::begin(kRunners), std::end(kRunners), program); }

}  // namespace

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool runs_programs(std::string_view program) { return listed(program) || listed(without_version(program)); }

bool takes_code(std::string_view program, std::string_view argument) {
  if (argument.size() < 2) return false;
  const std::string_view name = without_version(program);
  for (const Interpreter& interpreter : kInterpreters) {
    if (interpreter.name != name) continue;
    const std::string_view word = argument.substr(0, argument.find('='));
    const auto* end = std::end(interpreter.words);
    if (std::find(std::begin(interpreter.words), end, word) != end) return true;
    return argument[0] == '-' && argument[1] != '-' &&
           argument.substr(1).find_first_of(interpreter.letters) != std::string_view::npos;
  }
  return false;
}

}  // namespace x0x::policyc
