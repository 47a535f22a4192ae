// client/sink.cpp: nothing is lost, reordered or waited for.
#include "client/sink.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "tests/client/peer.hpp"

using namespace x0x::client;

namespace {

struct Ends {
  Ends(bool socket) {
    const int made = socket ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : ::pipe2(fds, O_CLOEXEC);
    if (made != 0) std::abort();
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~Ends() {
    close_reader();
    ::close(fds[1]);
  }
  void close_reader() {
    if (fds[0] >= 0) ::close(fds[0]);
    fds[0] = -1;
  }
  std::string take(std::size_t most) {
    std::string bytes(most, '\0');
    const ssize_t n = ::read(fds[0], bytes.data(), most);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }
  int fds[2];
};

}  // namespace

namespace {

// While it lives nothing can be opened, so a sink has only the descriptor it was given.
struct NothingOpens {
  NothingOpens() {
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{1, before.rlim_max};  // poll() still takes one
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NothingOpens() { ::setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before{};
};

enum class To { pipe, shared_pipe, socket };

}  // namespace

TEST_CASE("a full pipe or socket keeps the rest, in order, without blocking") {
  for (const To to : {To::pipe, To::shared_pipe, To::socket}) {
    Ends ends(to == To::socket);
    Sink sink(ends.fds[1]);
    std::optional<NothingOpens> nothing_opens;
    if (to == To::shared_pipe) nothing_opens.emplace();
    std::string sent;
    for (int i = 0; i < 100; ++i) {
      const std::string piece(10'000, static_cast<char>('!' + i % 90));
      sink.write(piece);  // a blocking write would hang the test here
      sent += piece;
    }
    CHECK(sink.pending() > 0);
    std::string got;
    while (got.size() < sent.size()) {
      got += ends.take(30'000);
      sink.pump();
    }
    CHECK(sink.pending() == 0);
    CHECK(sink.error() == 0);
    CHECK(got == sent);
    CHECK((::fcntl(ends.fds[1], F_GETFL) & O_NONBLOCK) == 0);  // others write to it as well
  }
}

TEST_CASE("a reader that left is an error, and later bytes are dropped") {
  for (const bool socket : {false, true}) {
    Ends ends(socket);
    Sink sink(ends.fds[1]);
    sink.write("read me");
    CHECK(ends.take(100) == "read me");
    ends.close_reader();
    sink.write("lost");
    CHECK(sink.error() == EPIPE);
    sink.write("lost too");
    CHECK(sink.pending() == 0);
  }
}

TEST_CASE("a descriptor that cannot be written is an error") {
  Ends ends(false);
  const int read_only = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int fd : {read_only, ends.fds[0]}) {
    Sink sink(fd);
    sink.write("x");
    CHECK(sink.error() == EBADF);
  }
  ::close(read_only);
}

TEST_CASE("a file gets everything at once") {
  test::TemporaryDirectory directory;
  const std::string path = directory.path + "/out";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  Sink sink(fd);
  sink.write(std::string(1'000'000, 'x'));
  CHECK(sink.pending() == 0);
  CHECK(std::filesystem::file_size(path) == 1'000'000);
  ::close(fd);
}

TEST_CASE("without a descriptor everything is kept") {
  Sink sink(-1);
  sink.write("a");
  sink.write(std::string_view("\0b", 2));
  sink.pump();
  CHECK(sink.pending() == 0);
  CHECK(sink.collected() == std::string("a\0b", 3));
}
