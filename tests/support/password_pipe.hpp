// A pipe with a password in it, for what reads one from a descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "policyc/password.hpp"

namespace x0x::policyc {

class PasswordPipe {
 public:
  explicit PasswordPipe(const std::string& text) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read_end_ = ends[0];
    if (write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the pipe is full");
    close(ends[1]);
  }
  PasswordPipe(const PasswordPipe&) = delete;
  PasswordPipe& operator=(const PasswordPipe&) = delete;
  ~PasswordPipe() { close(read_end_); }

  PasswordSource source() const { return {read_end_}; }

 private:
  int read_end_;
};

}  // namespace x0x::policyc
