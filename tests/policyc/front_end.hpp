// Policies as text, for tests of the front end.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "policyc/parse.hpp"

namespace x0x::policyc {

inline const std::string kAgentHex = "abababababababababababababababababababababababababababababababab";
inline const std::string kMachineHex = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

inline std::string entry_text(std::string_view more = "") {
  return fmt::format("[[exec.allow]]\nagent_id = \"{}\"\nmachine_id = \"{}\"\n{}", kAgentHex, kMachineHex, more);
}

inline std::string command_text(std::string_view argv, std::string_view more = "") {
  return fmt::format("[[exec.allow.commands]]\nargv = {}\n{}\n", argv, more);
}

// A whole policy with one command, on line 6.
inline std::string one_command(std::string_view argv, std::string_view more = "") {
  return "[exec]\n" + entry_text() + command_text(argv, more);
}

struct Checked {
  Source source;
  Diagnostics diagnostics;
  std::optional<Policy> policy;

  // "E021 6:18, W002 9:8"
  std::string summary() const {
    std::string all;
    for (const Diagnostic& d : diagnostics.all())
      all += fmt::format("{}{} {}:{}", all.empty() ? "" : ", ", info(d.kind).code, d.span.line, d.span.column);
    return all;
  }
};

inline Checked check_text(std::string text) {
  Checked checked{make_source("test.toml", std::move(text)), {}, {}};
  checked.policy = parse_policy(checked.source, checked.diagnostics);
  return checked;
}

}  // namespace x0x::policyc
