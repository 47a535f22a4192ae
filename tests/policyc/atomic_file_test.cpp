#include "policyc/atomic_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "policyc/read_file.hpp"
#include "policyc/user_error.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

const std::vector<std::uint8_t> kOld{'o', 'l', 'd'}, kNew{'n', 'e', 'w', 0, '!'};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::string error_of(const std::string& path, Existing existing = Existing::replace) {
  try {
    write_file_atomically(path, kNew, 0644, existing);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a file is written with its mode, and nothing else is left beside it") {
  const Scratch scratch;
  const mode_t umask_before = umask(022);
  write_file_atomically(scratch.path("secret"), kNew, 0600);
  write_file_atomically(scratch.path("table"), kNew);
  umask(umask_before);
  CHECK(scratch.bytes("secret") == kNew);
  CHECK(mode_of(scratch.path("secret")) == 0600);
  CHECK(mode_of(scratch.path("table")) == 0644);
  CHECK(scratch.names().size() == 2);
}

TEST_CASE("a file is replaced, or kept when that was asked for") {
  const Scratch scratch;
  scratch.put("table", kOld);
  CHECK(error_of(scratch.path("table"), Existing::keep).find("exists already") != std::string::npos);
  CHECK(scratch.bytes("table") == kOld);
  CHECK(error_of(scratch.path("table")) == "");
  CHECK(scratch.bytes("table") == kNew);
  CHECK(error_of(scratch.path("fresh"), Existing::keep) == "");
  CHECK(scratch.bytes("fresh") == kNew);
  CHECK(scratch.names().size() == 2);
}

TEST_CASE("a name without a directory is written where we are") {
  const Scratch scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path("."));
  CHECK(error_of("table") == "");
  std::filesystem::current_path(before);
  CHECK(scratch.bytes("table") == kNew);
}

TEST_CASE("a link, a device and a directory are refused and left alone") {
  const Scratch scratch;
  scratch.put("target", kOld);
  std::filesystem::create_symlink("target", scratch.path("link"));
  CHECK(error_of(scratch.path("link")).find("symbolic link") != std::string::npos);
  CHECK(scratch.bytes("target") == kOld);
  CHECK(error_of("/dev/null") == "`/dev/null` is not a regular file");
  CHECK(error_of(scratch.path(".")).find("Is a directory") != std::string::npos);
  CHECK(error_of(scratch.path("")).find("Is a directory") != std::string::npos);
  CHECK(error_of("").find("No such file") != std::string::npos);
}

TEST_CASE("a directory that is missing or no directory gives one line") {
  const Scratch scratch;
  scratch.put("file", kOld);
  CHECK(error_of(scratch.path("missing/table")) ==
        "cannot write `" + scratch.path("missing/table") + "`: No such file or directory");
  CHECK(error_of(scratch.path("file/table")).find("Not a directory") != std::string::npos);
}

TEST_CASE("a read-only directory gives one line") {
  if (geteuid() == 0) return;  // root writes anywhere
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("closed"));
  chmod(scratch.path("closed").c_str(), 0500);
  CHECK(error_of(scratch.path("closed/table")).find("Permission denied") != std::string::npos);
  chmod(scratch.path("closed").c_str(), 0700);
}

// A full disk is imitated by a limit on the size of a file: both fail in the middle of write().
TEST_CASE("a write that fails half-way leaves the old file and nothing else") {
  const Scratch scratch;
  scratch.put("table", kOld);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{2, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const std::string error = error_of(scratch.path("table"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(error.find("File too large") != std::string::npos);
  CHECK(scratch.bytes("table") == kOld);
  CHECK(scratch.names() == std::vector<std::string>{"table"});
}

TEST_CASE("reading: a missing file, a directory and a file past the bound are refused") {
  const Scratch scratch;
  const std::string path = scratch.put("five", kNew);
  CHECK(read_file(path, 5) == kNew);
  CHECK_THROWS_AS(read_file(path, 4), UserError);
  CHECK(read_secret_file(path, 5).text() == std::string_view("new\0!", 5));
  CHECK_THROWS_AS(read_secret_file(path, 4), UserError);
  CHECK_THROWS_WITH(read_file(scratch.path("none"), 4),
                    ("cannot read `" + scratch.path("none") + "`: No such file or directory").c_str());
  CHECK_THROWS_WITH(read_file("/", 4), "cannot read `/`: Is a directory");
  CHECK(read_file(scratch.put("empty", ""), 4).empty());
}

TEST_CASE("reading: a device without a size is read to its end or to the bound") {
  CHECK(read_file("/dev/null", 4).empty());
  CHECK_THROWS_AS(read_file("/dev/zero", 100'000), UserError);
}

}  // namespace
}  // namespace x0x::policyc
