// client/main.cpp: the program itself, against an enforcer made for the test.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/client/peer.hpp"

using namespace x0x::client;
using namespace x0x::client::test;

namespace {

const std::string kAgent(64, 'a');
const std::string kMachine = "B" + std::string(63, 'b');

struct Finished {
  int status = -1;  // as a shell shows it
  std::string out, err;
};

struct Place {
  TemporaryDirectory directory;
  std::string file(const std::string& name) const { return directory.path + "/" + name; }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(file(name), std::ios::binary).rdbuf();
    return text.str();
  }
};

// Starts x0x-exec with `out` (a file of `place` unless given) and an environment of its own.
pid_t start(const Place& place, std::vector<std::string> words, const std::string& input = "/dev/null", int out = -1) {
  const char* const program = std::getenv("X0X_EXEC");
  REQUIRE(program != nullptr);
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = {"HOME=" + place.directory.path, "XDG_RUNTIME_DIR=" + place.directory.path,
                                        "ASAN_OPTIONS=detect_leaks=1"};
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  if (out >= 0)
    ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  else
    ::posix_spawn_file_actions_addopen(&actions, 1, place.file("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, place.file("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program, &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  REQUIRE(error == 0);
  return pid;
}

Finished finish(const Place& place, pid_t pid) {
  int how = 0;
  REQUIRE(::waitpid(pid, &how, 0) == pid);
  return {WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how), place.read("out"), place.read("err")};
}

std::vector<std::string> with_ids(const std::string& socket, std::vector<std::string> rest) {
  std::vector<std::string> words = {"--agent", kAgent, "--machine", kMachine, "--socket", socket};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

Finished exec(const std::function<void(Peer&)>& script, std::vector<std::string> rest,
              const std::string& input = "/dev/null") {
  Place place;
  ListeningPeer enforcer(script);
  return finish(place, start(place, with_ids(enforcer.path, std::move(rest)), input));
}
Finished alone(std::vector<std::string> words) {
  Place place;
  return finish(place, start(place, std::move(words)));
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("the program behaves as if the command had run here") {
  const Finished finished = exec(
      [](Peer& peer) {
        CHECK(peer.read_tag() == 0);
        CHECK(peer.session.pair.agent[0] == 0xaa);
        CHECK(peer.session.pair.machine[0] == 0xbb);
        CHECK(peer.fields == u64(3) + text("printf") + text("") + text("--json") + kNone + u32(0) + kNone);
        peer.started();
        peer.out(std::string("out\0\xff\n", 6));
        peer.err("err\n");
        peer.exit_code(42);
      },
      {"--", "printf", "", "--json"});
  CHECK(finished.status == 42);
  CHECK(finished.out == std::string("out\0\xff\n", 6));
  CHECK(finished.err == "err\n");
}

TEST_CASE("input and timeout travel in the request") {
  Place place;
  std::ofstream(place.file("in"), std::ios::binary) << "payload";
  const auto script = [](Peer& peer) {
    CHECK(peer.read_tag() == 0);
    CHECK(peer.fields == u64(1) + text("cat") + "\x01" + text("payload") + u32(2500) + kNone);
    peer.exit_code(0);
  };
  CHECK(exec(script, {"--timeout", "2.5", "--stdin-file", place.file("in"), "--", "cat"}).status == 0);
  CHECK(exec(script, {"--timeout", "2.5", "--stdin-file", "-", "--", "cat"}, place.file("in")).status == 0);
}

TEST_CASE("one line on stderr for a denial, a signal, a time that was up and a lost enforcer") {
  const auto ends = [](int status, const std::string& line, const std::function<void(Peer&)>& script) {
    const Finished finished = exec(
        [&script](Peer& peer) {
          peer.read_tag();
          script(peer);
        },
        {"--timeout", "2", "--", "x"});
    CHECK(finished.status == status);
    CHECK(finished.out.empty());
    CHECK(lines(finished.err) == 1);
    CHECK_MESSAGE(finished.err.starts_with(line), finished.err);
  };
  ends(255, "x0x-exec: denied: argv_not_allowed: no rule of this agent", [](Peer& p) { p.deny(4); });
  ends(128 + SIGABRT, "x0x-exec: killed: SIGABRT after 0.0 s\n", [](Peer& p) { p.exit_signal(SIGABRT); });
  ends(255, "x0x-exec: killed: its time was up: SIGKILL after 2.0 s (`--timeout` was 2.0 s)\n",
       [](Peer& p) { p.exit_signal(SIGKILL, 2000); });
  ends(255, "x0x-exec: transport: lost the enforcer: it closed", [](Peer&) {});
}

TEST_CASE("--json prints one object and keeps the status") {
  const Finished finished = exec(
      [](Peer& peer) {
        peer.read_tag();
        peer.started();
        peer.out("hello");
        peer.warning(3, "soon");
        peer.err("oops");
        peer.exit({.code = some(9), .out_total = 5, .err_total = 4});
      },
      {"--json", "--", "x"});
  CHECK(finished.status == 9);
  CHECK(finished.err.empty());
  const nlohmann::json json = nlohmann::json::parse(finished.out);
  CHECK(json["code"] == 9);
  CHECK(json["stdout_b64"] == "aGVsbG8=");
  CHECK(json["stderr_b64"] == "b29wcw==");
  CHECK(json["warnings"][0]["kind"] == "StdoutApproachingCap");
  CHECK(json["error"].is_null());
}

TEST_CASE("Ctrl-C once cancels, twice leaves") {
  for (const bool twice : {false, true}) {
    Place place;
    std::promise<void> running;
    std::promise<void> cancelled;
    ListeningPeer enforcer([&](Peer& peer) {
      peer.read_tag();
      peer.started();
      running.set_value();
      CHECK(peer.read_tag_but_renewals() == 7);
      cancelled.set_value();
      if (twice)
        CHECK(peer.read_tag_but_renewals() == 99);
      else {
        peer.warning(7, "cancelled");  // known already, so not shown
        peer.exit_signal(SIGTERM);
      }
    });
    const pid_t pid = start(place, with_ids(enforcer.path, {"--", "sleep", "60"}));
    running.get_future().wait();
    ::kill(pid, SIGINT);
    cancelled.get_future().wait();
    if (twice) ::kill(pid, SIGINT);
    const Finished finished = finish(place, pid);
    CHECK(finished.status == (twice ? 130 : 143));
    CHECK(lines(finished.err) == 1);
  }
}

TEST_CASE("`cancel ID` from another terminal") {
  Place place;
  std::promise<std::string> running;
  ListeningPeer enforcer([&](Peer& peer) {
    peer.read_tag();
    peer.started();
    running.set_value(to_uuid(peer.session.request_id));
    CHECK(peer.read_tag_but_renewals() == 7);
    peer.exit_signal(SIGTERM);
  });
  const pid_t pid = start(place, with_ids(enforcer.path, {"--", "sleep", "60"}));
  const std::string id = running.get_future().get();
  Place other;
  // The file appears while the enforcer answers; until then nobody is found.
  while (!std::filesystem::exists(place.file("x0x-exec/" + id))) ::usleep(1000);
  Finished told;
  do {
    std::vector<std::string> words = {"cancel", id};
    std::filesystem::remove_all(other.file("x0x-exec"));
    std::filesystem::create_directory_symlink(place.file("x0x-exec"), other.file("x0x-exec"));
    told = finish(other, start(other, words));
  } while (told.status != 0 && ::kill(pid, 0) == 0 && std::filesystem::exists(place.file("x0x-exec/" + id)));
  CHECK(told.status == 0);
  CHECK(contains(told.out, "told process " + std::to_string(pid)));
  CHECK(finish(place, pid).status == 143);
  CHECK_FALSE(std::filesystem::exists(place.file("x0x-exec/" + id)));
}

TEST_CASE("a closed stdout cancels the session") {
  Place place;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ListeningPeer enforcer([](Peer& peer) {
    peer.read_tag();
    peer.started();
    peer.out("y\n");
    CHECK(peer.read_tag_but_renewals() == 7);
    peer.exit_signal(SIGTERM);
  });
  ::close(ends[0]);
  const pid_t pid = start(place, with_ids(enforcer.path, {"--", "yes"}), "/dev/null", ends[1]);
  ::close(ends[1]);
  const Finished finished = finish(place, pid);
  CHECK(finished.status == 141);
  CHECK(finished.err == "x0x-exec: stopped: nobody reads the output any more\n");
}

TEST_CASE("questions") {
  const auto ask = [](std::vector<std::string> words, char kind, const std::string& document) {
    Place place;
    ListeningPeer enforcer([&](Peer& peer) {
      CHECK(peer.read_body() == std::string(1, kind));
      peer.send_body(std::string(1, kind) + document);
    });
    words.insert(words.end(), {"--socket", enforcer.path});
    return finish(place, start(place, words));
  };
  CHECK(ask({"sessions"}, 3, R"({"sessions":[]})").out == "no session is running\n");
  CHECK(contains(ask({"diagnostics"}, 2, R"({"enabled":false})").out, "no\n"));
  CHECK(ask({"diagnostics", "--format", "json"}, 2, R"({"enabled":false})").out == "{\n  \"enabled\": false\n}\n");
  CHECK(ask({"diagnostics"}, 2, "rubbish").status == 255);
}

TEST_CASE("mistakes end with 255 and one line") {
  const auto refused = [](std::vector<std::string> words, std::string_view part) {
    const Finished finished = alone(std::move(words));
    CHECK(finished.status == 255);
    CHECK(finished.out.empty());
    CHECK(lines(finished.err) == 1);
    CHECK_MESSAGE(contains(finished.err, part), finished.err);
  };
  refused({}, "no command");
  refused({"--", "ls"}, "no agent id");
  refused({"--agent", "12", "--machine", kMachine, "--", "ls"}, "the agent id must be 64 hex digits");
  refused(with_ids("/nonexistent/x.sock", {"--", "ls"}), "no enforcer socket at `/nonexistent/x.sock`");
  refused(with_ids("/s", {"--stdin-file", "/dev/zero", "--", "ls"}), "too large");
  refused(with_ids("/s", {"--\033[31m", "--", "ls"}), "unknown option `--\\u{1b}[31m`");
}

TEST_CASE("help and version") {
  const Finished help = alone({"--help"});
  CHECK(help.status == 0);
  for (const char* const word : {"--agent", "--machine", "--socket", "--timeout", "--stdin-file", "--json", "sessions",
                                 "cancel", "diagnostics", "exit status", "examples", "255"})
    CHECK(contains(help.out, word));
  CHECK(alone({"--version"}).out.starts_with("x0x-exec "));
}
