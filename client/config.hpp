// Where the ids and the socket come from: option, then environment, then the user's file, then the default.
//
// The file is opened only when something is still missing. tests/client/config_test.cpp shows the order and
// every mistake a file can hold.
#pragma once

#include <optional>
#include <string>

#include "client/codec.hpp"

namespace x0x::client {

inline constexpr const char* kDefaultSocket = "/run/x0x/enforcer.sock";

struct Settings {
  std::optional<std::string> agent;
  std::optional<std::string> machine;
  std::optional<std::string> socket;
};

// What the caller's environment says; passed in so that tests need not change their own.
struct Environment {
  std::string socket;       // X0X_SOCKET
  std::string config_home;  // XDG_CONFIG_HOME
  std::string home;         // HOME
};
Environment environment_of_process();

// Empty when the environment names no place.
std::string config_path(const Environment& environment);
// Nothing when there is no such file; Failure when it cannot be read or says something unknown.
Settings read_config(const std::string& path);

// Fills what `options` leaves open. Ids are needed to run a command, not to ask a question.
enum class Needs : bool { socket_only, ids_too };
void complete(Settings& options, const Environment& environment, Needs needs);

// 64 hex digits, or a Failure that names `what`.
Id parse_id(const std::string& hex, std::string_view what);

}  // namespace x0x::client
