// Runs of `true` through the enforcer on one warm connection, against a bare posix_spawn of the same program.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "bench/clock.hpp"
#include "bench/parts.hpp"
#include "bench/series.hpp"
#include "client/connection.hpp"

namespace x0x::bench {

namespace {

using namespace x0x::client;

constexpr int kRounds = 150;
constexpr int kParallel = 32, kParallelRuns = 320, kParallelRounds = 7;

// A record of about the size the enforcer writes.
constexpr std::size_t kRecordBytes = 500;

class Enforcer {
 public:
  explicit Enforcer(const std::string& socket) : connection_(connect_to(socket)) {
    session_.pair.agent.fill(0xab);
    session_.pair.machine.fill(0xcd);
  }

  void ask() {
    std::memcpy(session_.request_id.data(), &++asked_, sizeof asked_);
    connection_.send(encode_request(session_, {{"true"}, std::nullopt, 0, std::nullopt}));
  }

  // Returns at the end of one run, whichever it is.
  void wait_for_exit() {
    for (;;) {
      while (const std::optional<Bytes> message = connection_.next()) {
        Answer answer;
        if (decode_answer(*message, answer) != Malformed::none) throw std::runtime_error("an answer is malformed");
        const auto* exit = std::get_if<client::Exit>(&answer.frame);
        if (exit == nullptr) continue;
        if (exit->code != 0) throw std::runtime_error("the enforcer did not run `true`");
        return;
      }
      if (connection_.closed()) throw std::runtime_error("the enforcer closed the connection");
      pollfd waiting{connection_.fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 10'000) == 0) throw std::runtime_error("the enforcer does not answer");
      connection_.flush();
      connection_.receive();
    }
  }

 private:
  Connection connection_;
  Session session_;
  std::uint64_t asked_ = 0;
};

void start_bare() {
  char name[] = "true";
  char* const argv[] = {name, nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/usr/bin/true", nullptr, nullptr, argv, environ) != 0)
    throw std::runtime_error("cannot run /usr/bin/true");
}

void wait_bare() {
  int status = 0;
  if (::wait(&status) < 0 || status != 0) throw std::runtime_error("`true` failed");
}

void make_durable(int log) {
  const std::string record(kRecordBytes, 'x');
  if (::write(log, record.data(), record.size()) < 0 || ::fdatasync(log) != 0)
    throw std::runtime_error("cannot write the log");
}

template <class Work>
double timed(const Work& work) {
  const std::int64_t start = wall_ns();
  work();
  return static_cast<double>(wall_ns() - start);
}

// Keeps kParallel of them going until kParallelRuns have ended.
template <class Start, class Wait>
void keep_going(const Start& start, const Wait& wait) {
  for (int i = 0; i < kParallel; ++i) start();
  for (int ended = 1; ended <= kParallelRuns; ++ended) {
    wait();
    if (ended + kParallel <= kParallelRuns) start();
  }
}

}  // namespace

int session_part(const std::string& socket, const std::string& log_path) {
  Enforcer enforcer(socket);
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  Series series;
  for (int round = -3; round < kRounds; ++round) {
    const double ours = timed([&] {
      enforcer.ask();
      enforcer.wait_for_exit();
    });
    const double bare = timed([&] {
      make_durable(log);
      start_bare();
      wait_bare();
      make_durable(log);
    });
    const double spawned = timed([] {
      start_bare();
      wait_bare();
    });
    if (round < 0) continue;
    series.add("ours", ours);
    series.add("bare", bare);
    series.add("spawn alone", spawned);
  }
  ::close(log);
  series.print();
  return 0;
}

int parallel_part(const std::string& socket) {
  Enforcer enforcer(socket);
  Series series;
  for (int round = -1; round < kParallelRounds; ++round) {
    const double ours = timed([&] { keep_going([&] { enforcer.ask(); }, [&] { enforcer.wait_for_exit(); }); });
    const double bare = timed([] { keep_going(start_bare, wait_bare); });
    if (round < 0) continue;
    series.add("ours", kParallelRuns / ours * 1e9);
    series.add("bare", kParallelRuns / bare * 1e9);
  }
  series.print();
  return 0;
}

}  // namespace x0x::bench
