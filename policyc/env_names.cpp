#include "policyc/env_names.hpp"

#include <algorithm>

namespace x0x::policyc {

namespace {

struct Danger {
  std::string_view name;  // one that ends in `*` stands for every name that begins so
  std::string_view why;
};

constexpr std::string_view kLoads = "it changes which code a program loads";
constexpr std::string_view kShell = "a shell runs or obeys what it says";
constexpr std::string_view kRuns = "it names a program that others start";
constexpr std::string_view kFiles = "it makes the C library read other files";
constexpr std::string_view kPath = "bare program names are looked up in the enforcer's own fixed PATH";

constexpr Danger kDangers[] = {
    {"PATH", kPath},
    // the dynamic loader and the C library
    {"LD_*", kLoads},
    {"DYLD_*", kLoads},
    {"GCONV_PATH", kLoads},
    {"GETCONF_DIR", kRuns},
    {"GLIBC_TUNABLES", kLoads},
    {"MALLOC_*", kFiles},
    {"LOCPATH", kFiles},
    {"NLSPATH", kFiles},
    {"TZDIR", kFiles},
    {"HOSTALIASES", kFiles},
    {"LOCALDOMAIN", kFiles},
    {"RESOLV_*", kFiles},
    {"RES_OPTIONS", kFiles},
    // shells
    {"IFS", kShell},
    {"ENV", kShell},
    {"BASH_*", kShell},
    {"BASHOPTS", kShell},
    {"SHELLOPTS", kShell},
    {"CDPATH", kShell},
    {"FPATH", kShell},
    {"ZDOTDIR", kShell},
    {"PS0", kShell},
    {"PS1", kShell},
    {"PS2", kShell},
    {"PS4", kShell},
    {"PROMPT_COMMAND", kShell},
    {"GLOBIGNORE", kShell},
    // language run-times
    {"PYTHON*", kLoads},
    {"PERL5*", kLoads},
    {"PERLLIB", kLoads},
    {"PERLIO", kLoads},
    {"RUBY*", kLoads},
    {"GEM_*", kLoads},
    {"BUNDLE_*", kLoads},
    {"NODE_*", kLoads},
    {"NPM_*", kLoads},
    {"LUA_*", kLoads},
    {"PHPRC", kLoads},
    {"PHP_INI_SCAN_DIR", kLoads},
    {"CLASSPATH", kLoads},
    {"JAVA_*", kLoads},
    {"JDK_JAVA_OPTIONS", kLoads},
    {"_JAVA_OPTIONS", kLoads},
    {"TCLLIBPATH", kLoads},
    {"GUILE_*", kLoads},
    {"R_*", kLoads},
    {"JULIA_*", kLoads},
    {"DOTNET_*", kLoads},
    {"CORECLR_*", kLoads},
    {"COR_*", kLoads},
    {"GODEBUG", kLoads},
    {"AWKPATH", kLoads},
    {"AWKLIBPATH", kLoads},
    {"OPENSSL_*", kLoads},
    {"SSLKEYLOGFILE", kFiles},
    {"QT_PLUGIN_PATH", kLoads},
    {"GTK_*", kLoads},
    {"GIO_*", kLoads},
    {"ASAN_OPTIONS", kLoads},
    // programs that start other programs
    {"GIT_*", kRuns},
    {"SSH_*", kRuns},
    {"SVN_SSH", kRuns},
    {"CVS_RSH", kRuns},
    {"RSYNC_*", kRuns},
    {"SUDO_*", kRuns},
    {"SYSTEMD_PAGER", kRuns},
    {"SYSTEMD_EDITOR", kRuns},
    {"SYSTEMD_LESS", kRuns},
    {"EDITOR", kRuns},
    {"VISUAL", kRuns},
    {"FCEDIT", kRuns},
    {"SUDO_EDITOR", kRuns},
    {"PAGER", kRuns},
    {"MANPAGER", kRuns},
    {"MANOPT", kRuns},
    {"BROWSER", kRuns},
    {"SHELL", kRuns},
    {"TERMINAL", kRuns},
    {"TAR_OPTIONS", kRuns},
    {"RSH", kRuns},
    {"LESS", kRuns},
    {"LESSOPEN", kRuns},
    {"LESSCLOSE", kRuns},
    {"LESSKEY*", kRuns},
    {"LESSEDIT", kRuns},
    {"MORE", kRuns},
    {"MAKEFLAGS", kRuns},
    {"MFLAGS", kRuns},
    {"GNUMAKEFLAGS", kRuns},
    {"MAKEFILES", kRuns},
    {"CC", kRuns},
    {"VIMINIT", kRuns},
    {"EXINIT", kRuns},
    {"CURL_HOME", kFiles},
    {"WGETRC", kFiles},
    {"TERMINFO", kFiles},
    {"TERMINFO_DIRS", kFiles},
    {"TERMCAP", kFiles},
};

bool letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

bool is_env_identifier(std::string_view name) {
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string_view why_dangerous(std::string_view name) {
  for (const Danger& danger : kDangers)
    if (matches(danger.name, name)) return danger.why;
  return {};
}

}  // namespace x0x::policyc
