// A policy as its author wrote it: checked, in file order, every part with the place it came from.
//
// parse.cpp makes it from TOML, read_table.cpp from a compiled table; lower.cpp turns it into shapes and pieces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace x0x::policyc {

// A place in a source file, counted from 1 in lines and code points. Line 0: the policy came from a table.
struct Span {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t length = 1;  // code points to underline, all on one line
  bool operator==(const Span&) const = default;
};

using Id = std::array<std::uint8_t, 32>;

// One argv token of a rule. `text` is the literal, or what stands before <URL_PATH>; empty for <INT>.
struct Token {
  enum class Kind { literal, integer, url_path };
  Kind kind = Kind::literal;
  std::string text;
  Span span;

  bool operator==(const Token& other) const { return kind == other.kind && text == other.text; }
};

// An argv that the author says must be allowed, or denied, for the command's pair.
struct Example {
  std::vector<std::string> argv;
  Span span;
};

// Child limits; 0 means the rule does not set it.
struct Limits {
  std::uint64_t cpu_secs = 0, memory_bytes = 0, file_bytes = 0, open_files = 0, processes = 0;
};

struct EnvVar {
  std::string name, value;
};

struct Command {
  std::vector<Token> argv;
  Span span;       // the command's table
  Span argv_span;  // its argv array

  std::optional<std::string> exe, reason, cwd;
  std::optional<std::array<std::uint8_t, 32>> sha256;
  bool stdin_allowed = true;
  bool network = true;
  bool audit_hash = false;
  std::uint64_t max_duration_secs = 0, max_stdout_bytes = 0, max_stderr_bytes = 0,
                max_stdin_bytes = 0;  // 0: inherit
  std::vector<EnvVar> env;            // sorted by name, no duplicates
  Limits limits;
  std::optional<std::vector<std::string>> writable;  // sorted, no duplicates; empty: nothing is writable
  std::vector<Example> allow, deny;                  // in file order
};

struct Entry {
  Id agent{}, machine{};
  std::optional<std::string> description;
  std::uint64_t max_duration_secs = 0;  // 0: the policy's
  std::vector<Command> commands;        // never empty
  Span span;
};

struct Exec {
  bool enabled = false;
  std::uint64_t max_stdout_bytes = 16'777'216;
  std::uint64_t max_stderr_bytes = 16'777'216;
  std::uint64_t max_stdin_bytes = 1'048'576;
  std::uint64_t max_duration_secs = 300;
  std::uint32_t max_concurrent_per_agent = 4;
  std::uint32_t max_concurrent_total = 32;
  std::uint64_t warn_stdout_bytes = 8'388'608;  // this and the next two: clamped to the maximum
  std::uint64_t warn_stderr_bytes = 8'388'608;
  std::uint64_t warn_duration_secs = 60;
  std::optional<std::string> default_cwd;
  std::string audit_log_path = "/var/log/x0x/exec.log";
  std::optional<std::string> audit_tasklist_id;
};

struct Policy {
  std::optional<std::string> name;
  std::optional<std::uint64_t> version;
  std::optional<std::uint64_t> not_before, expires;  // Unix seconds, > 0
  std::optional<std::vector<std::string>> audience;  // sorted, no duplicates; absent: any node
  Span policy_span;                                  // the [policy] header, or the start of the file
  Exec exec;
  std::vector<Entry> entries;
};

}  // namespace x0x::policyc
