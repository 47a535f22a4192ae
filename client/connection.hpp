// One connection to the enforcer: whole messages in both directions, and never a call that blocks.
//
// A peer that closes is not an error here: what it said before is still read, and then closed() is true.
// tests/client/connection_test.cpp feeds it one byte at a time, oversized lengths and missing sockets.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "client/codec.hpp"

namespace x0x::client {

// Something that ends the client with status 255; what() is the line for the person at the keyboard.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A connected stream socket, or a Failure that says what to do about it.
int connect_to(const std::string& socket_path);

class Connection {
 public:
  explicit Connection(int fd) : fd_(fd) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const Message& message);  // sends what fits now, keeps the rest for flush()
  void flush();
  bool wants_to_send() const { return !outbox_.empty(); }

  void receive();  // takes what is there now
  bool closed() const { return closed_; }
  // The next complete message without its length, valid until the next receive(). Failure: a length that
  // cannot be.
  std::optional<Bytes> next();

  int fd() const { return fd_; }

 private:
  int fd_;
  bool closed_ = false;
  bool deaf_ = false;  // the peer takes nothing any more; it may still have said something
  Message outbox_;
  Message inbox_;
  std::size_t inbox_start_ = 0, inbox_end_ = 0;
  bool filled_ = false;  // the last receive() had no room for more
};

// Asks a question without a body and waits for its document.
std::string ask(Connection& connection, std::uint8_t kind);

}  // namespace x0x::client
