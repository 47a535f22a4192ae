#include "enforcer/endpoint.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/scratch.hpp"

using namespace x0x;
using x0x::policyc::Scratch;

namespace {

// A datagram socket with this name; a leading NUL makes it abstract.
int listen_for_notices(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a socket of our own has mode 0600 and leaves the umask alone") {
  Scratch scratch;
  const std::string path = scratch.path("s");
  int fd = -1;
  const mode_t mask = umask(022);
  REQUIRE(claim_socket(path.c_str(), fd) == Fault::none);
  CHECK(umask(mask) == 022);
  struct stat file {};
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK(S_ISSOCK(file.st_mode));
  CHECK((file.st_mode & 07777) == 0600);
  CHECK(probe_socket(path.c_str()) == 0);
  close(fd);
}

TEST_CASE("a live socket is in use; one that nobody listens on is replaced") {
  Scratch scratch;
  const std::string path = scratch.path("s");
  int first = -1, second = -1;
  REQUIRE(claim_socket(path.c_str(), first) == Fault::none);
  CHECK(claim_socket(path.c_str(), second) == Fault::socket_in_use);
  close(first);
  CHECK(probe_socket(path.c_str()) == ECONNREFUSED);
  CHECK(claim_socket(path.c_str(), second) == Fault::none);
  CHECK(probe_socket(path.c_str()) == 0);
  close(second);
}

TEST_CASE("what is not a socket is left alone, and the directory is not made") {
  Scratch scratch;
  const std::string path = scratch.put("s", "precious");
  int fd = -1;
  CHECK(claim_socket(path.c_str(), fd) == Fault::socket_not_possible);
  close(fd);
  CHECK(scratch.text("s") == "precious");
  CHECK(claim_socket(scratch.path("no/s").c_str(), fd) == Fault::socket_not_possible);
  close(fd);
  CHECK(claim_socket((scratch.path("") + std::string(200, 'x')).c_str(), fd) == Fault::socket_not_possible);
  close(fd);
  CHECK(scratch.names().size() == 1);
}

TEST_CASE("systemd is told at a path and at an abstract name, and nobody when there is nobody") {
  Scratch scratch;
  char text[32];
  for (const std::string& name : {scratch.path("notify"), "@x0x-endpoint-test-" + std::to_string(getpid())}) {
    std::string bound = name;
    if (bound[0] == '@') bound[0] = '\0';
    const int fd = listen_for_notices(bound);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    notify_systemd("READY=1");
    CHECK(recv(fd, text, sizeof text, MSG_DONTWAIT) == 7);
    CHECK(std::string(text, 7) == "READY=1");
    close(fd);
  }
  unsetenv("NOTIFY_SOCKET");
  notify_systemd("READY=1");
}
