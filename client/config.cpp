#include "client/config.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "client/connection.hpp"

namespace x0x::client {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment environment_of_process() { return {variable("X0X_SOCKET"), variable("XDG_CONFIG_HOME"), variable("HOME")}; }

std::string config_path(const Environment& environment) {
  // The XDG specification says to ignore a relative path.
  if (environment.config_home.starts_with('/')) return environment.config_home + "/x0x/exec.toml";
  if (environment.home.starts_with('/')) return environment.home + "/.config/x0x/exec.toml";
  return "";
}

Settings read_config(const std::string& path) {
  if (path.empty()) return {};
  if (::access(path.c_str(), R_OK) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw Failure(fmt::format("cannot read `{}`: {}", path, std::strerror(errno)));
  }
  try {
    Settings settings;
    const toml::table table = toml::parse_file(path);
    for (const auto& [key, value] : table) {
      const std::string_view name = key.str();
      std::optional<std::string>* const slot = name == "agent"     ? &settings.agent
                                               : name == "machine" ? &settings.machine
                                               : name == "socket"  ? &settings.socket
                                                                   : nullptr;
      if (slot == nullptr)
        throw Failure(fmt::format("{}:{}: unknown key `{}` (known are `agent`, `machine` and `socket`)", path,
                                  key.source().begin.line, name));
      *slot = value.value<std::string>();
      if (!value.is_string())
        throw Failure(fmt::format("{}:{}: `{}` must be a text in quotes", path, value.source().begin.line, name));
    }
    return settings;
  } catch (const toml::parse_error& error) {
    throw Failure(fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
}

void complete(Settings& options, const Environment& environment, Needs needs) {
  if (!options.socket && !environment.socket.empty()) options.socket = environment.socket;
  const bool lacks_ids = needs == Needs::ids_too && (!options.agent || !options.machine);
  if (!options.socket || lacks_ids) {
    const Settings file = read_config(config_path(environment));
    if (!options.agent) options.agent = file.agent;
    if (!options.machine) options.machine = file.machine;
    if (!options.socket) options.socket = file.socket.value_or(kDefaultSocket);
  }
  if (needs == Needs::socket_only) return;
  const char* missing = !options.agent ? "agent" : !options.machine ? "machine" : nullptr;
  if (missing != nullptr) {
    const std::string path = config_path(environment);
    throw Failure(fmt::format("no {0} id: give `--{0} HEX`{1}", missing,
                              path.empty() ? "" : fmt::format(", or put `{} = \"HEX\"` into `{}`", missing, path)));
  }
}

Id parse_id(const std::string& hex, std::string_view what) {
  Id id{};
  if (from_hex(hex, id)) return id;
  const std::size_t bad = hex.find_first_not_of("0123456789abcdefABCDEF");
  const std::string why = bad != std::string::npos ? fmt::format("character {} is not a hex digit", bad + 1)
                                                   : fmt::format("this has {} digits", hex.size());
  throw Failure(fmt::format("the {} id must be 64 hex digits; {}", what, why));
}

}  // namespace x0x::client
