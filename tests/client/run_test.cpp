// client/run.cpp: a whole session against an enforcer played by a thread.
#include "client/run.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <future>

#include "client/report.hpp"
#include "tests/client/peer.hpp"

using namespace x0x;
using namespace x0x::client;
using namespace x0x::client::test;
using namespace std::chrono_literals;

namespace {

// Stands in for a signalfd: a pipe that carries the same records.
struct Signals {
  Signals() {
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  }
  ~Signals() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void raise(int number) {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(number);
    if (::write(ends[1], &info, sizeof info) != sizeof info) std::abort();
  }
  int ends[2];
};

// Runs `script` as the enforcer and a client that collects its output.
Outcome play(const std::function<void(Peer&)>& script, Terminal terminal = {.out = -1, .err = -1},
             std::uint32_t timeout_ms = 0) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  std::thread enforcer([&script, fd = ends[1]] {
    Peer peer(fd);
    script(peer);
  });
  Outcome outcome;
  {
    Connection connection(ends[0]);
    Request request;
    request.argv = {"echo", "hi"};
    request.timeout_ms = timeout_ms;
    outcome = run(connection, test_session(), request, terminal);
  }
  enforcer.join();
  return outcome;
}

std::string read_all(int fd) {
  std::string bytes;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) bytes.append(buffer, static_cast<std::size_t>(n));
  return bytes;
}

}  // namespace

TEST_CASE("a normal run: both streams, interleaved, binary") {
  const Outcome outcome = play([](Peer& peer) {
    CHECK(peer.read_tag() == 0);
    peer.started();
    peer.out(std::string("a\0b", 3));
    peer.err("E1\n");
    peer.out("\xff\xfe");
    peer.err("E2\n");
    peer.exit_code(7);
  });
  CHECK(outcome.started);
  CHECK(outcome.out == std::string("a\0b\xff\xfe", 5));
  CHECK(outcome.err == "E1\nE2\n");
  CHECK(ending_of(outcome).status == 7);
  CHECK(ending_of(outcome).kind.empty());
}

TEST_CASE("an answer that comes one byte at a time") {
  const Outcome outcome = play([](Peer& peer) {
    peer.read_tag();
    const std::string bytes = body(peer.session, 3, u32(0) + text("slow"));
    for (const char c : u32(static_cast<std::uint32_t>(bytes.size())) + bytes) peer.send_raw({&c, 1});
    peer.exit_code(0);
  });
  CHECK(outcome.out == "slow");
  CHECK(ending_of(outcome).status == 0);
}

TEST_CASE("every denial ends with 255 and its own name") {
  for (std::uint32_t reason = 0; reason < std::size(wire::kDenialNames); ++reason) {
    const Outcome outcome = play([reason](Peer& peer) {
      peer.read_tag();
      peer.deny(reason);
    });
    CHECK(ending_of(outcome).status == 255);
    CHECK(ending_of(outcome).kind == "denied");
    CHECK(ending_of(outcome).why.starts_with(std::string(wire::kDenialNames[reason]) + ": "));
  }
}

TEST_CASE("a signal becomes 128 plus its number") {
  const Outcome outcome = play([](Peer& peer) {
    peer.read_tag();
    peer.started();
    peer.exit_signal(SIGSEGV);
  });
  CHECK(ending_of(outcome).status == 128 + SIGSEGV);
  CHECK(ending_of(outcome).why.find("SIGSEGV") != std::string::npos);
}

TEST_CASE("a lost enforcer, before and after the start") {
  const Outcome before = play([](Peer& peer) { peer.read_tag(); });
  CHECK(ending_of(before).status == 255);
  CHECK(ending_of(before).why.find("before the command started") != std::string::npos);
  const Outcome after = play([](Peer& peer) {
    peer.read_tag();
    peer.started();
    peer.out("half");
  });
  CHECK(ending_of(after).status == 255);
  CHECK(ending_of(after).why.find("before the command's end") != std::string::npos);
  CHECK(after.out == "half");
}

TEST_CASE("an enforcer that closes without reading a byte is a lost enforcer, and its last words count") {
  const Outcome silent = play([](Peer&) {});
  CHECK(ending_of(silent).status == 255);
  CHECK_FALSE(silent.exit.has_value());
  const Outcome spoke = play([](Peer& peer) { peer.deny(11); });
  CHECK(ending_of(spoke).kind == "denied");
}

TEST_CASE("garbage ends the session with 255") {
  const auto lost = [](const std::function<void(Peer&)>& script) {
    const Outcome outcome = play([&script](Peer& peer) {
      peer.read_tag();
      script(peer);
    });
    CHECK(ending_of(outcome).status == 255);
    CHECK(ending_of(outcome).kind == "transport");
    return ending_of(outcome).why;
  };
  CHECK(lost([](Peer& p) { p.send_body("rubbish"); }).find("cannot be read") != std::string::npos);
  CHECK(lost([](Peer& p) { p.send_raw(u32(0)); }).find("0 bytes") != std::string::npos);
  CHECK(lost([](Peer& p) { p.send_raw(u32((2u << 20) + 1)); }).find("2097153 bytes") != std::string::npos);
  CHECK(lost([](Peer& p) { p.send_raw(u32(0xffffffff)); }).find("4294967295 bytes") != std::string::npos);
  CHECK(lost([](Peer& p) { p.send(0, ""); }).find("only a client sends") != std::string::npos);
  CHECK(lost([](Peer& p) {
          p.session.request_id[0] ^= 1;
          p.exit_code(0);
        }).find("not ours") != std::string::npos);
  CHECK(lost([](Peer& p) {
          p.session.pair.agent[0] ^= 1;
          p.exit_code(0);
        }).find("not ours") != std::string::npos);
  CHECK(lost([](Peer& p) { p.send(3, u32(1) + text("x")); }).find("missing") != std::string::npos);
}

TEST_CASE("the lease is renewed again and again, for the right session") {
  const Outcome outcome = play(
      [](Peer& peer) {
        CHECK(peer.read_tag() == 0);
        peer.started();
        for (int i = 0; i < 3; ++i) {
          CHECK(peer.read_tag() == 1);
          CHECK(peer.session == test_session());
        }
        peer.exit_code(0);
      },
      {.out = -1, .err = -1, .renew_every = 5ms});
  CHECK(ending_of(outcome).status == 0);
}

TEST_CASE("a signal cancels once and waits for the Exit") {
  Signals signals;
  const Outcome outcome = play(
      [&](Peer& peer) {
        peer.read_tag();
        peer.started();
        signals.raise(SIGINT);
        CHECK(peer.read_tag() == 7);
        CHECK(peer.session == test_session());
        peer.warning(7, "cancelled");
        peer.out("last words");
        peer.exit_signal(SIGTERM);
      },
      {.out = -1, .err = -1, .signals = signals.ends[0]});
  CHECK(outcome.cancelled_here);
  CHECK(outcome.out == "last words");
  CHECK(ending_of(outcome).status == 128 + SIGTERM);
  CHECK(ending_of(outcome).kind == "cancelled");
}

TEST_CASE("a command that survives the cancel and ends by itself keeps its code") {
  Signals signals;
  const Outcome outcome = play(
      [&](Peer& peer) {
        peer.read_tag();
        signals.raise(SIGHUP);
        CHECK(peer.read_tag() == 7);
        peer.exit_code(3);
      },
      {.out = -1, .err = -1, .signals = signals.ends[0]});
  CHECK(ending_of(outcome).status == 3);
}

TEST_CASE("a second signal leaves at once") {
  Signals signals;
  const Outcome outcome = play(
      [&](Peer& peer) {
        peer.read_tag();
        peer.started();
        signals.raise(SIGINT);
        CHECK(peer.read_tag() == 7);
        signals.raise(SIGINT);
        CHECK(peer.read_tag() == 99);  // the client has gone, although no Exit was sent
      },
      {.out = -1, .err = -1, .signals = signals.ends[0]});
  CHECK(outcome.left_on_signal == SIGINT);
  CHECK(ending_of(outcome).status == 130);
}

TEST_CASE("a closed stdout cancels the session and waits for the Exit") {
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  ::close(pipe_ends[0]);
  ::signal(SIGPIPE, SIG_IGN);
  const Outcome outcome = play(
      [](Peer& peer) {
        peer.read_tag();
        peer.started();
        peer.out("nobody reads this\n");
        CHECK(peer.read_tag() == 7);
        peer.out("nor this\n");
        peer.exit_signal(SIGTERM);
      },
      {.out = pipe_ends[1], .err = -1});
  ::close(pipe_ends[1]);
  CHECK(outcome.exit.has_value());
  CHECK(outcome.output_error == EPIPE);
  CHECK(ending_of(outcome).status == 128 + SIGPIPE);
}

TEST_CASE("output that cannot be written is not a success") {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  const Outcome outcome = play(
      [](Peer& peer) {
        peer.read_tag();
        peer.out("lost\n");
        CHECK(peer.read_tag() == 7);
        peer.exit_code(0);
      },
      {.out = full, .err = -1});
  ::close(full);
  CHECK(ending_of(outcome).status == 255);
  CHECK(ending_of(outcome).why.find("No space left") != std::string::npos);
}

TEST_CASE("a slow reader gets every byte, while the lease is renewed") {
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  std::string sent;
  for (int i = 0; i < 64; ++i) sent += std::string(16384, static_cast<char>('!' + i));
  std::promise<void> renewed;
  std::future<std::string> got = std::async(std::launch::async, [&] {
    renewed.get_future().wait();  // reads nothing until renewals have come through a full pipe
    return read_all(pipe_ends[0]);
  });
  const Outcome outcome = play(
      [&](Peer& peer) {
        peer.read_tag();
        std::thread producer([&] {
          for (std::size_t i = 0; i < sent.size(); i += 16384) peer.out(sent.substr(i, 16384));
          peer.exit_code(0);
        });
        for (int i = 0; i < 5; ++i) CHECK(peer.read_body().value_or(std::string(78, '?'))[77] == 1);
        renewed.set_value();
        producer.join();
      },
      {.out = pipe_ends[1], .err = -1, .renew_every = 5ms});
  ::close(pipe_ends[1]);
  CHECK(got.get() == sent);
  ::close(pipe_ends[0]);
  CHECK(ending_of(outcome).status == 0);
}

TEST_CASE("a signal leaves when only unread output is left") {
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  Signals signals;
  const Outcome outcome = play(
      [&](Peer& peer) {
        peer.read_tag();
        for (int i = 0; i < 8; ++i) peer.out(std::string(16384, 'x'));  // more than a pipe holds
        peer.exit_code(0);
        signals.raise(SIGINT);
        peer.read_tag_but_renewals();
        signals.raise(SIGINT);
      },
      {.out = pipe_ends[1], .err = -1, .signals = signals.ends[0]});
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  CHECK(outcome.left_on_signal == SIGINT);
}

TEST_CASE("warnings go to stderr in their place, and are kept") {
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  const Outcome outcome = play(
      [](Peer& peer) {
        peer.read_tag();
        peer.err("before\n");
        peer.warning(0, "stopped at 1024 bytes\033[31m");
        peer.err("after\n");
        peer.exit_code(0);
      },
      {.out = -1, .err = pipe_ends[1]});
  ::close(pipe_ends[1]);
  CHECK(read_all(pipe_ends[0]) == "before\nx0x-exec: warning: StdoutCapHit: stopped at 1024 bytes\\u{1b}[31m\nafter\n");
  ::close(pipe_ends[0]);
  REQUIRE(outcome.warnings.size() == 1);
  CHECK(outcome.warnings[0].kind == wire::WarningKind::stdout_cap_hit);
}

TEST_CASE("a large request is sent whole although the enforcer reads slowly") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::string received;
  std::thread enforcer([&, fd = ends[1]] {
    Peer peer(fd);
    CHECK(peer.read_tag() == 0);
    received = peer.fields;
    peer.exit_code(0);
  });
  Request request;
  request.argv = {"cat"};
  request.stdin_bytes = std::string(2'000'000, 'z');
  {
    Connection connection(ends[0]);
    CHECK(run(connection, test_session(), request, {.out = -1, .err = -1}).exit.has_value());
  }
  enforcer.join();
  CHECK(received.find(*request.stdin_bytes) != std::string::npos);
}
