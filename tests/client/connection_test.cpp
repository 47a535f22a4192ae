// client/connection.cpp: finding the enforcer, and whole messages out of pieces.
#include "client/connection.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/client/peer.hpp"

using namespace x0x::client;
using namespace x0x::client::test;

namespace {

std::string why_not(const std::string& path) {
  try {
    ::close(connect_to(path));
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("each way to miss the enforcer has its own words") {
  TemporaryDirectory directory;
  CHECK(contains(why_not(directory.path + "/none.sock"), "no enforcer socket at"));
  const std::string file = directory.path + "/file";
  std::ofstream(file) << "x";
  CHECK(contains(why_not(file + "/below.sock"), "no enforcer socket at"));
  CHECK(contains(why_not(file), "nothing listens on"));  // the kernel says the same of any file
  std::string stale;
  {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    stale = directory.path + "/stale.sock";
    stale.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
  }
  CHECK(contains(why_not(stale), "nothing listens on"));
  CHECK(contains(why_not(directory.path + "/" + std::string(200, 'x')), "too long"));
  CHECK(contains(why_not(""), "empty"));
}

TEST_CASE("a socket of another user: permission denied") {
  if (::geteuid() == 0) return;  // root may always connect
  ListeningPeer peer([](Peer&) {});
  REQUIRE(::chmod(peer.path.c_str(), 0) == 0);
  CHECK(contains(why_not(peer.path), "permission denied"));
}

TEST_CASE("messages come out whole, one by one, however they went in") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Connection connection(ends[0]);
  CHECK_FALSE(connection.next().has_value());
  {
    Peer peer(ends[1]);
    const std::string two = u32(3) + "abc" + u32(1) + "d";
    std::string seen;
    for (const char c : two) {
      peer.send_raw({&c, 1});
      connection.receive();
      while (const auto message = connection.next()) seen += std::string(as_text(*message)) + "|";
    }
    CHECK(seen == "abc|d|");
    peer.send_raw(u32(3) + "ab");
    connection.receive();
    CHECK_FALSE(connection.next().has_value());
    CHECK_FALSE(connection.closed());
  }
  connection.receive();
  CHECK(connection.closed());
  CHECK_FALSE(connection.next().has_value());
}

TEST_CASE("what an enforcer said before it closed is still read") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Connection connection(ends[0]);
  {
    Peer peer(ends[1]);
    peer.send_raw(u32(3) + "bye");
  }
  connection.send(Message(10));  // nobody takes it
  CHECK_FALSE(connection.wants_to_send());
  connection.receive();
  const auto message = connection.next();
  REQUIRE(message.has_value());
  CHECK(as_text(*message) == "bye");
}

TEST_CASE("a question gets its document, or a reason") {
  const auto answer = [](const std::string& bytes) -> std::string {
    ListeningPeer peer([&](Peer& p) {
      CHECK(p.read_body() == std::string("\x02"));
      if (!bytes.empty()) p.send_body(bytes);
    });
    Connection connection(connect_to(peer.path));
    try {
      return ask(connection, 2);
    } catch (const Failure& failure) {
      return failure.what();
    }
  };
  CHECK(answer("\x02{\"enabled\":true}") == "{\"enabled\":true}");
  CHECK(contains(answer("\x03{}"), "kind that was not asked for"));
  CHECK(contains(answer("\x02\xff"), "not UTF-8"));
  CHECK(contains(answer(""), "closed the connection without an answer"));
}
