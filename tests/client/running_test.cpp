// client/running.cpp: `cancel` reaches the process that runs the session, and no other.
#include "client/running.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "client/connection.hpp"
#include "tests/client/peer.hpp"

using namespace x0x::client;
using test::TemporaryDirectory;

namespace {

const RequestId kId = test::test_session().request_id;
const std::string kIdText = "0102030405060708090A0B0C0D0E0F10";  // either case

std::string why_not(const std::string& directory, const std::string& id) {
  try {
    cancel_running(directory, id);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// A process that holds the session until it is told to end.
pid_t hold_in_child(const std::string& directory) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGTERM, SIG_DFL);
    RunningFile file;
    file.open(directory, kId);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char byte = 0;
  const ssize_t n = ::read(ready[0], &byte, 1);
  ::close(ready[0]);
  ::close(ready[1]);
  if (n != 1) std::abort();
  return child;
}

}  // namespace

TEST_CASE("the holder is found and told to end") {
  TemporaryDirectory base;
  const std::string directory = base.path + "/x0x-exec";
  const pid_t child = hold_in_child(directory);
  struct stat status {};
  REQUIRE(::stat((directory + "/" + to_uuid(kId)).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(::stat(directory.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(cancel_running(directory, kIdText) == child);
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  CHECK(WIFSIGNALED(how));
  CHECK(WTERMSIG(how) == SIGTERM);
}

TEST_CASE("a file left behind by a killed client points at nobody and is removed") {
  TemporaryDirectory base;
  const std::string directory = base.path + "/x0x-exec";
  const pid_t child = hold_in_child(directory);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(std::filesystem::exists(directory + "/" + to_uuid(kId)));
  CHECK(contains(why_not(directory, kIdText), "no x0x-exec of this user runs session"));
  CHECK_FALSE(std::filesystem::exists(directory + "/" + to_uuid(kId)));
}

TEST_CASE("what a file says is never believed: only its lock counts") {
  TemporaryDirectory directory;
  std::ofstream(directory.path + "/" + to_uuid(kId)) << "1\n";
  CHECK(contains(why_not(directory.path, kIdText), "no x0x-exec of this user runs session"));
}

TEST_CASE("the file goes with the session, and a symlink in its place is not followed") {
  TemporaryDirectory base;
  const std::string path = base.path + "/" + to_uuid(kId);
  {
    RunningFile file;
    file.open(base.path, kId);
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::create_symlink(base.path + "/elsewhere", path);
  {
    RunningFile file;
    file.open(base.path, kId);
  }
  CHECK_FALSE(std::filesystem::exists(base.path + "/elsewhere"));
  CHECK(std::filesystem::is_symlink(path));
}

TEST_CASE("no place for the file is no reason to fail, but cancel says so") {
  RunningFile file, nowhere;
  file.open("", kId);
  nowhere.open("/dev/null/x", kId);
  CHECK(contains(why_not("", kIdText), "`XDG_RUNTIME_DIR` is not set"));
  CHECK(contains(why_not("/", "../../etc/passwd"), "32 hex digits"));
  CHECK(contains(why_not("/nonexistent", kIdText), "no x0x-exec of this user"));
}
