// Loading a table, against hashing the same bytes and checking one signature; and starting the enforcer with it.
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "bench/clock.hpp"
#include "bench/parts.hpp"
#include "bench/series.hpp"
#include "enforcer/blob_view.hpp"

namespace x0x::bench {

namespace {

constexpr int kRounds = 15;

std::vector<std::uint8_t> read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void load(Bytes file, const TrustedKeys& trusted) {
  const Result<VerifiedBytes> verified = verify({file}, trusted);
  if (!verified.ok()) throw std::runtime_error(fault_name(verified.fault()));
  const Result<BlobView> opened = BlobView::open(verified.value());
  if (!opened.ok()) throw std::runtime_error(fault_name(opened.fault()));
}

void hash_and_verify(Bytes file, const TrustedKeys& trusted) {
  const Envelope envelope = open_envelope({file}).value();
  std::uint8_t hash[64];
  crypto_generichash(hash, sizeof hash, envelope.payload.data(), envelope.payload.size(), nullptr, 0);
  if (crypto_sign_verify_detached(envelope.signatures[0].signature.data(), hash, sizeof hash, trusted.keys[0].key) != 0)
    throw std::runtime_error("the table is not signed by the key");
}

// A socket that hears what a service tells systemd. Its name is abstract, so nothing of it stays, however this ends.
class Notice {
 public:
  Notice() {
    const std::string name = "@x0x-bench-notice." + std::to_string(::getpid());
    sockaddr_un address{AF_UNIX, {}};
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size();
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)) != 0)
      throw std::runtime_error("cannot bind " + name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Notice() { ::close(fd_); }
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;

  void wait_for(std::string_view wanted) {
    char text[256];
    for (;;) {
      const ssize_t n = ::recv(fd_, text, sizeof text, 0);
      if (n <= 0) throw std::runtime_error("the enforcer did not become ready");
      if (std::string_view(text, static_cast<std::size_t>(n)).find(wanted) != std::string_view::npos) return;
    }
  }

 private:
  int fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

double start_to_ready(Arguments enforcer, Notice& notice) {
  const std::int64_t start = wall_ns();
  const pid_t pid = ::vfork();  // as posix_spawn does, and it ends with us, however we end
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execv(enforcer[0], enforcer.data());
    ::_exit(127);
  }
  if (pid < 0) throw std::runtime_error("cannot start the enforcer");
  notice.wait_for("READY=1");
  const std::int64_t taken = wall_ns() - start;
  ::kill(pid, SIGTERM);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error("the enforcer did not stop well");
  return static_cast<double>(taken);
}

}  // namespace

int load_part(const std::string& table, const std::string& trust, Arguments enforcer) {
  const std::vector<std::uint8_t> file = read_whole(table), keys = read_whole(trust);
  const TrustedKeys trusted = parse_trust(keys).value();
  Notice notice;
  Series series;
  for (int round = -1; round < kRounds; ++round) {
    const std::int64_t cpu_start = cpu_ns(), wall_start = wall_ns();
    load(file, trusted);
    const std::int64_t cpu_loaded = cpu_ns(), wall_loaded = wall_ns();
    hash_and_verify(file, trusted);
    const std::int64_t cpu_hashed = cpu_ns();
    const double ready = start_to_ready(enforcer, notice);
    if (round < 0) continue;
    series.add("load", static_cast<double>(cpu_loaded - cpu_start));
    series.add("load on the wall", static_cast<double>(wall_loaded - wall_start));
    series.add("hash and verify", static_cast<double>(cpu_hashed - cpu_loaded));
    series.add("ready", ready);
  }
  series.print();
  return 0;
}

}  // namespace x0x::bench
