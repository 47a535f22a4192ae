// What the command line asks for.
//
// Everything after the first `--` is the command, token for token. `sessions`, `cancel` and `diagnostics` are
// words of ours only as the very first argument. tests/client/options_test.cpp shows both, and every refusal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/config.hpp"

namespace x0x::client {

enum class Action : unsigned char { help, version, run, sessions, cancel, diagnostics };
enum class Format : unsigned char { human, json };

struct Options {
  Action action = Action::run;
  Settings settings;
  std::vector<std::string> argv;
  std::uint32_t timeout_ms = 0;
  std::string stdin_file;  // empty: no input; `-`: our own
  bool json = false;
  Format format = Format::human;
  std::string cancel_id;
};

// Failure: the line for the person who typed it.
Options parse_options(int argc, const char* const* argv);

std::string_view help_text();

}  // namespace x0x::client
