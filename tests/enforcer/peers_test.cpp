#include "enforcer/peers.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/scratch.hpp"

using namespace x0x;
using x0x::policyc::Scratch;

namespace {

// One peer and the other end of its connection.
struct Connected {
  Peer peers[3];
  int ends[2] = {-1, -1};
  std::uint32_t uid = geteuid();
  Peer* peer = nullptr;

  Connected() {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    peer = admit(peers, ends[0], {&uid, 1}, 100);
    REQUIRE(peer != nullptr);
  }
  ~Connected() {
    for (Peer& p : peers)
      if (p.fd >= 0) p.close();
    if (ends[1] >= 0) close(ends[1]);
  }
  void put(const std::string& text) {
    REQUIRE(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
};

std::string prefixed(const std::string& text) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(text.size() >> (8 * i));
  return out + text;
}

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

TEST_CASE("a frame one byte at a time is put together, and two in one read are kept apart") {
  Connected c;
  std::span<std::uint8_t> whole;
  const std::string message = prefixed("hello");
  for (std::size_t i = 0; i + 1 < message.size(); ++i) {
    c.put(message.substr(i, 1));
    CHECK_FALSE(c.peer->receive(whole, 1));
  }
  c.put("o" + prefixed("x"));
  REQUIRE(c.peer->receive(whole, 1));
  CHECK(std::string(whole.begin(), whole.end()) == "hello");
  std::free(whole.data());
  REQUIRE(c.peer->receive(whole, 1));
  CHECK(whole.size() == 1);
  std::free(whole.data());
  CHECK_FALSE(c.peer->dead);
}

TEST_CASE("lengths of 0, of 2 MiB + 1 and of 4 GiB - 1 are malformed before anything is allocated") {
  for (const std::string& length : {std::string(4, '\0'), std::string("\x01\x00\x20\x00", 4), std::string(4, '\xff')}) {
    Connected c;
    std::span<std::uint8_t> whole;
    c.put(length);
    CHECK(c.peer->receive(whole, 1));
    CHECK(whole.data() == nullptr);
    CHECK(c.peer->message == nullptr);
    Message message;
    CHECK_FALSE(decode(whole, message));
  }
  Connected c;
  std::span<std::uint8_t> whole;
  c.put(std::string("\x00\x00\x20\x00", 4));
  CHECK_FALSE(c.peer->receive(whole, 1));
  CHECK(c.peer->message != nullptr);
}

TEST_CASE("a peer that closes is dead") {
  Connected c;
  std::span<std::uint8_t> whole;
  close(c.ends[1]);
  c.ends[1] = -1;
  CHECK_FALSE(c.peer->receive(whole, 1));
  CHECK(c.peer->dead);
}

TEST_CASE("a peer that never reads can hold so much and no more") {
  Connected c;
  const std::vector<std::uint8_t> data(64 << 10, 'x');
  std::size_t sent = 0;
  for (int i = 0; i < 200 && !c.peer->dead; ++i, ++sent) {
    c.peer->send(data);
    CHECK(c.peer->waiting() <= kMaxUnsent);
    CHECK(c.peer->unsent_room <= kMaxUnsent);
  }
  CHECK(c.peer->dead);
  CHECK(sent == kMaxUnsent / data.size() + 1);
}

TEST_CASE("what was sent arrives whole and in order, however slowly it is read") {
  Connected c;
  std::string expected, got;
  for (int i = 0; i < 4000; ++i) {
    const std::string head = "head" + std::to_string(i), tail(static_cast<std::size_t>(i % 97), 't');
    c.peer->send(as_bytes(head), as_bytes(tail));
    expected += head + tail;
    if (i % 7 == 0) c.peer->send_unsent();
    char buffer[100];
    if (i % 3 == 0)
      if (const ssize_t n = read(c.ends[1], buffer, sizeof buffer); n > 0)
        got.append(buffer, static_cast<std::size_t>(n));
  }
  while (got.size() < expected.size()) {
    char buffer[10000];
    c.peer->send_unsent();
    const ssize_t n = read(c.ends[1], buffer, sizeof buffer);
    REQUIRE(n > 0);
    got.append(buffer, static_cast<std::size_t>(n));
  }
  CHECK(got == expected);
  CHECK_FALSE(c.peer->dead);
}

TEST_CASE("a peer that leaves gets its last frames, and is dead then") {
  Connected c;
  c.peer->send(as_bytes("bye"));
  c.peer->leaving = true;
  c.peer->send(as_bytes("never"));
  c.peer->send_unsent();
  CHECK(c.peer->dead);
  char buffer[10];
  CHECK(read(c.ends[1], buffer, sizeof buffer) == 3);
}

TEST_CASE("a foreign user is not admitted") {
  Peer peers[1];
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const std::uint32_t other = geteuid() + 1, both[] = {other, geteuid()};
  CHECK(admit(peers, ends[0], {}, 1) == nullptr);
  CHECK(admit(peers, ends[0], {&other, 1}, 1) == nullptr);
  CHECK(admit(peers, ends[0], both, 1) == peers);
  peers[0].close();
  close(ends[1]);
}

TEST_CASE(
    "when every place is taken, the silent go first, the longest silent of them before the others, the busy "
    "never") {
  Peer peers[4];
  const std::uint32_t uid = geteuid();
  int others[6];
  const auto join = [&](int i, std::uint64_t now) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    others[i] = ends[1];
    Peer* const peer = admit(peers, ends[0], {&uid, 1}, now);
    if (peer == nullptr) close(ends[0]);
    return peer;
  };
  for (int i = 0; i < 4; ++i) CHECK(join(i, 10 + static_cast<std::uint64_t>(i)) == peers + i);
  peers[0].standing = kSpoke + 1;
  peers[1].sessions = 1;
  peers[2].standing = 50;
  CHECK(join(4, 60) == peers + 3);
  peers[2].unsent_end = 1;
  peers[3].sessions = 1;
  CHECK(join(5, 70) == peers + 0);
  peers[0].sessions = 1;
  close(others[5]);
  CHECK(join(5, 80) == nullptr);
  peers[2].leaving = true;  // and does not read what is left for it
  CHECK(join(5, 90) == peers + 2);
  CHECK(peers[2].waiting() == 0);
  for (Peer& peer : peers) peer.close();
  for (const int fd : others) close(fd);
}
