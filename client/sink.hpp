// A local descriptor that output goes to: keeps what cannot be written yet, so a slow reader never stops the
// lease or Ctrl-C.
//
// The descriptor may be shared with other programs, so it is not made non-blocking. A pipe, terminal or device is
// opened once more for ourselves, without blocking; where that is not allowed it is asked whether it takes bytes, and
// given no more than it then must take. tests/client/sink_test.cpp shows partial writes, a reader that left, and order.
#pragma once

#include <string>
#include <string_view>

namespace x0x::client {

class Sink {
 public:
  // -1: keep everything in memory.
  explicit Sink(int fd);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string_view bytes);  // now if possible, otherwise with pump()
  void line(std::string_view text);    // a line of our own; on a terminal it never starts in mid-line
  void pump();
  std::size_t pending() const { return fd_ < 0 ? 0 : buffer_.size(); }
  int error() const { return error_; }  // errno of the write that failed; from then on bytes are dropped
  int fd() const { return fd_; }
  const std::string& collected() const { return buffer_; }

 private:
  enum class Kind : unsigned char { memory, file, pipe, socket, other };

  std::size_t write_now(std::string_view bytes);  // how many of them are done with
  void open_for_ourselves();

  int fd_;
  int own_fd_ = -1;  // the same pipe, terminal or device, not blocking
  bool tried_own_ = false;
  Kind kind_ = Kind::memory;
  int error_ = 0;
  bool at_line_start_ = true;
  std::string buffer_;
};

}  // namespace x0x::client
