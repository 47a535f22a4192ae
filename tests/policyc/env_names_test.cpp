#include "policyc/env_names.hpp"

#include <doctest/doctest.h>

namespace x0x::policyc {
namespace {

TEST_CASE("names that change what a program loads or runs are dangerous") {
  for (const std::string_view name : {"LD_PRELOAD",
                                      "LD_LIBRARY_PATH",
                                      "IFS",
                                      "BASH_ENV",
                                      "ENV",
                                      "PYTHONPATH",
                                      "PERL5OPT",
                                      "NODE_OPTIONS",
                                      "GCONV_PATH",
                                      "GIT_SSH_COMMAND",
                                      "BASH_FUNC_x",
                                      "PATH",
                                      "RUBYOPT",
                                      "LOCPATH",
                                      "NLSPATH",
                                      "MALLOC_TRACE",
                                      "GLIBC_TUNABLES",
                                      "HOSTALIASES",
                                      "RESOLV_HOST_CONF",
                                      "EDITOR",
                                      "VISUAL",
                                      "PAGER",
                                      "BROWSER",
                                      "SHELL",
                                      "SSH_ASKPASS",
                                      "JAVA_TOOL_OPTIONS",
                                      "_JAVA_OPTIONS",
                                      "CLASSPATH",
                                      "LESSOPEN",
                                      "LESSCLOSE",
                                      "PS4",
                                      "PROMPT_COMMAND",
                                      "PERLLIB"})
    CHECK_MESSAGE(!why_dangerous(name).empty(), name);
  for (const std::string_view name :
       {"TERM", "TZ", "HOME", "LANG", "TMPDIR", "SYSTEMD_COLORS", "PATHS", "MY_PATH", "ENVIRONMENT"})
    CHECK_MESSAGE(why_dangerous(name).empty(), name);
}

TEST_CASE("a name is an identifier") {
  for (const std::string_view name : {"A", "_", "a1", "TZ_9"}) CHECK(is_env_identifier(name));
  for (const std::string_view name : {"", "1A", "A-B", "A B", "A=B", "BASH_FUNC_x%%", "\xc3\xa9"})
    CHECK_FALSE(is_env_identifier(name));
}

}  // namespace
}  // namespace x0x::policyc
