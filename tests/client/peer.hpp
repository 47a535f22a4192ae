// The enforcer's side of a connection, for tests: reads whole messages, sends frames built here byte by byte,
// so that the client's own encoder is never asked whether it is right.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "client/codec.hpp"

namespace x0x::client::test {

inline std::string u32(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
  return bytes;
}
inline std::string u64(std::uint64_t value) {
  return u32(static_cast<std::uint32_t>(value)) + u32(static_cast<std::uint32_t>(value >> 32));
}
inline std::string text(std::string_view value) { return u64(value.size()) + std::string(value); }
inline std::string some(std::int32_t value) { return "\x01" + u32(static_cast<std::uint32_t>(value)); }
inline const std::string kNone(1, '\0');
inline const std::string kPrefixText("x0x-exec-v1\0", 12);

inline Session test_session() {
  Session session;
  session.pair.agent.fill(0xaa);
  session.pair.machine.fill(0xbb);
  for (std::size_t i = 0; i < session.request_id.size(); ++i) session.request_id[i] = static_cast<std::uint8_t>(i + 1);
  return session;
}

// What follows the length.
inline std::string body(const Session& session, std::uint32_t tag, std::string_view fields) {
  std::string bytes = "\x01";
  bytes += as_text(session.pair.agent);
  bytes += as_text(session.pair.machine);
  return bytes.append(kPrefixText).append(u32(tag)).append(as_text(session.request_id)).append(fields);
}

struct ExitFields {
  std::string code = kNone, signal = kNone;
  std::uint64_t duration_ms = 7, out_total = 0, err_total = 0;
  std::string truncated = kNone, reason = kNone;
  std::string bytes() const {
    return code + signal + u64(duration_ms) + u64(out_total) + u64(err_total) + truncated + reason;
  }
};

class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool send_raw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool send_body(std::string_view bytes) {
    return send_raw(u32(static_cast<std::uint32_t>(bytes.size())) + std::string(bytes));
  }
  bool send(std::uint32_t tag, std::string_view rest) { return send_body(body(session, tag, rest)); }
  void started() { send(2, u32(4242)); }
  bool out(std::string_view data) { return send(3, u32(out_seq_++) + text(data)); }
  bool err(std::string_view data) { return send(4, u32(err_seq_++) + text(data)); }
  void warning(std::uint32_t kind, std::string_view message) { send(5, u32(kind) + text(message)); }
  void exit(const ExitFields& how) { send(6, how.bytes()); }
  void exit_code(std::int32_t code) { exit({.code = some(code)}); }
  void exit_signal(std::int32_t number, std::uint64_t duration_ms = 7) {
    exit({.signal = some(number), .duration_ms = duration_ms});
  }
  void deny(std::uint32_t reason) { exit({.reason = some(static_cast<std::int32_t>(reason))}); }

  // The next message without its length; nothing when the client has gone.
  std::optional<std::string> read_body() {
    const std::string length = read_exactly(4);
    if (length.size() < 4) return std::nullopt;
    std::uint32_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size << 8 | static_cast<std::uint8_t>(length[i]);
    std::string bytes = read_exactly(size);
    if (bytes.size() < size) return std::nullopt;
    return bytes;
  }
  // The tag of the next frame (99: the client has gone). A Request tells this peer which session it serves.
  std::uint32_t read_tag() {
    const std::optional<std::string> bytes = read_body();
    if (!bytes || bytes->size() < kHead) return 99;
    const auto tag = static_cast<std::uint8_t>((*bytes)[77]);
    for (std::size_t i = 0; i < 32; ++i) {
      session.pair.agent[i] = static_cast<std::uint8_t>((*bytes)[1 + i]);
      session.pair.machine[i] = static_cast<std::uint8_t>((*bytes)[33 + i]);
    }
    for (std::size_t i = 0; i < 16; ++i) session.request_id[i] = static_cast<std::uint8_t>((*bytes)[81 + i]);
    fields = bytes->substr(kHead);
    return tag;
  }
  // Skips renewals.
  std::uint32_t read_tag_but_renewals() {
    std::uint32_t tag = 0;
    do tag = read_tag();
    while (tag == 1);
    return tag;
  }

  Session session = test_session();
  std::string fields;  // of the last frame read

 private:
  static constexpr std::size_t kHead = 1 + 64 + 12 + 4 + 16;

  std::string read_exactly(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t n = ::recv(fd_, bytes.data() + have, size - have, 0);
      if (n <= 0) break;
      have += static_cast<std::size_t>(n);
    }
    bytes.resize(have);
    return bytes;
  }

  int fd_;
  std::uint32_t out_seq_ = 0, err_seq_ = 0;
};

// A directory that goes away with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "x0x-client-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path;
};

// An enforcer that accepts one connection on a real socket and plays a script on it.
class ListeningPeer {
 public:
  explicit ListeningPeer(std::function<void(Peer&)> script) : path(directory_.path + "/enforcer.sock") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
    if (::listen(listener_, 4) != 0) std::abort();
    thread_ = std::thread([this, script = std::move(script)] {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      Peer peer(fd);
      script(peer);
    });
  }
  ~ListeningPeer() {
    ::shutdown(listener_, SHUT_RDWR);  // wakes accept() when nobody came
    thread_.join();
    ::close(listener_);
  }
  ListeningPeer(const ListeningPeer&) = delete;
  ListeningPeer& operator=(const ListeningPeer&) = delete;

 private:
  TemporaryDirectory directory_;
  int listener_ = -1;
  std::thread thread_;

 public:
  std::string path;
};

}  // namespace x0x::client::test
