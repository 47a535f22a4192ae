// client/config.cpp: the order of the places, and every mistake in the file.
#include "client/config.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "client/connection.hpp"
#include "tests/client/peer.hpp"

using namespace x0x::client;
using test::TemporaryDirectory;

namespace {

struct Home {
  TemporaryDirectory directory;
  Environment environment{"", directory.path, ""};
  void write(const std::string& text) const {
    std::filesystem::create_directories(directory.path + "/x0x");
    std::ofstream(directory.path + "/x0x/exec.toml") << text;
  }
};

std::string fault(const Home& home, Needs needs = Needs::ids_too) {
  Settings settings;
  try {
    complete(settings, home.environment, needs);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("option before environment before file before default") {
  Home home;
  Settings settings;
  complete(settings, home.environment, Needs::socket_only);
  CHECK(settings.socket == kDefaultSocket);
  home.write("agent = 'A'\nmachine = 'M'\nsocket = '/file.sock'\n");
  settings = {};
  complete(settings, home.environment, Needs::ids_too);
  CHECK(settings.socket == "/file.sock");
  CHECK(settings.agent == "A");
  CHECK(settings.machine == "M");
  home.environment.socket = "/environment.sock";
  settings = {};
  settings.machine = "option";
  complete(settings, home.environment, Needs::ids_too);
  CHECK(settings.socket == "/environment.sock");
  CHECK(settings.agent == "A");
  CHECK(settings.machine == "option");
  settings.socket = "/option.sock";
  complete(settings, home.environment, Needs::ids_too);
  CHECK(settings.socket == "/option.sock");
}

TEST_CASE("the file is not looked at when nothing is missing") {
  Home home;
  home.write("this is not TOML");
  Settings settings{"A", "M", "/s"};
  CHECK_NOTHROW(complete(settings, home.environment, Needs::ids_too));
}

TEST_CASE("where the file is") {
  CHECK(config_path({"", "/x", "/h"}) == "/x/x0x/exec.toml");
  CHECK(config_path({"", "", "/h"}) == "/h/.config/x0x/exec.toml");
  CHECK(config_path({"", "relative", "/h"}) == "/h/.config/x0x/exec.toml");
  CHECK(config_path({"", "", ""}) == "");
  CHECK_FALSE(read_config("").socket.has_value());
}

TEST_CASE("mistakes in the file are named with their line") {
  Home home;
  CHECK(contains(fault(home), "no agent id: give `--agent HEX`"));
  home.write("agent = 'A'");
  CHECK(contains(fault(home), "no machine id"));
  home.write("\nagnet = 'A'");
  CHECK(contains(fault(home), "exec.toml:2: unknown key `agnet`"));
  home.write("agent = 5");
  CHECK(contains(fault(home), "exec.toml:1: `agent` must be a text"));
  home.write("agent = 'A'\nagent = 'B'");
  CHECK(contains(fault(home), "exec.toml:2: "));
  home.write("agent = ");
  CHECK(contains(fault(home), "exec.toml:1: "));
}

TEST_CASE("ids are 64 hex digits in either case") {
  const std::string good(64, 'A');
  CHECK(parse_id(good, "agent")[31] == 0xaa);
  const auto why = [](const std::string& hex) -> std::string {
    try {
      parse_id(hex, "machine");
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK(why("abc") == "the machine id must be 64 hex digits; this has 3 digits");
  CHECK(why("") == "the machine id must be 64 hex digits; this has 0 digits");
  CHECK(why(good + "a") == "the machine id must be 64 hex digits; this has 65 digits");
  CHECK(why("0x" + good.substr(2)) == "the machine id must be 64 hex digits; character 2 is not a hex digit");
}
