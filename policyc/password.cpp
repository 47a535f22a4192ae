#include "policyc/password.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sodium.h>
#include <termios.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "policyc/file_handle.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGALRM, SIGPIPE};
volatile std::sig_atomic_t caught_signal = 0;

extern "C" void note_signal(int number) { caught_signal = number; }

// While it lives, the signals above do nothing but end a ppoll() under `outside`.
class SignalsHeld {
 public:
  SignalsHeld() {
    caught_signal = 0;
    sigset_t held;
    sigemptyset(&held);
    for (const int number : kSignals) sigaddset(&held, number);
    sigprocmask(SIG_BLOCK, &held, &outside);
    struct sigaction action {};
    action.sa_handler = note_signal;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    sigprocmask(SIG_SETMASK, &outside, nullptr);
  }

  sigset_t outside;

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

class EchoOff {
 public:
  explicit EchoOff(int terminal) : terminal_(terminal) {
    if (tcgetattr(terminal, &before_) != 0)
      throw UserError(fmt::format("cannot turn off the terminal's echo: {}", std::strerror(errno)));
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
    silent.c_lflag |= ICANON | ISIG;
    tcsetattr(terminal, TCSAFLUSH, &silent);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;
  ~EchoOff() { tcsetattr(terminal_, TCSAFLUSH, &before_); }

 private:
  int terminal_;
  termios before_{};
};

void say(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

// The first line, one byte at a time: what follows belongs to somebody else. `wait` returns false to give up.
template <class Wait>
SecretBytes read_line(int descriptor, const std::string& from, Wait wait) {
  SecretBytes line(kMaxPasswordBytes + 1);
  std::size_t length = 0;
  for (;;) {
    if (!wait()) break;
    std::uint8_t byte = 0;
    const ssize_t got = read(descriptor, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError(fmt::format("cannot read the password from {}: {}", from, std::strerror(errno)));
    if (got == 0 || byte == '\n') break;
    if (length == line.size())
      throw UserError(fmt::format("the password is longer than {} bytes", kMaxPasswordBytes), kExitRefused);
    line.data()[length++] = byte;
    sodium_memzero(&byte, 1);
  }
  if (length > 0 && line.data()[length - 1] == '\r') --length;
  line.shorten(length);
  return line;
}

void check(const SecretBytes& password) {
  if (password.size() == 0)
    throw UserError("the password is empty; `keygen --no-password` makes a key that needs none", kExitRefused);
  if (password.size() > kMaxPasswordBytes)
    throw UserError(fmt::format("the password is longer than {} bytes", kMaxPasswordBytes), kExitRefused);
  if (password.text().find('\0') != std::string_view::npos)
    throw UserError("the password holds a NUL byte, which minisign cannot read", kExitRefused);
}

SecretBytes ask_on_terminal(int terminal, const std::string& prompt) {
  for (;;) {
    SecretBytes line;
    {
      SignalsHeld signals;
      {
        EchoOff echo_off(terminal);
        say(terminal, prompt);
        line = read_line(terminal, "the terminal", [&] {
          pollfd input{terminal, POLLIN, 0};
          while (caught_signal == 0) {
            if (ppoll(&input, 1, nullptr, &signals.outside) >= 0 || errno != EINTR) return true;
          }
          return false;
        });
      }
      say(terminal, "\n");
    }
    if (caught_signal == 0) return line;
    raise(caught_signal);  // with the terminal and the handlers as they were; we are here again after Ctrl-Z
    if (caught_signal != SIGTSTP) throw UserError("interrupted while asking for the password");
  }
}

FileHandle open_terminal() {
  FileHandle terminal(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal) throw UserError("there is no terminal to ask for the password on; give it with `--password-fd N`");
  return terminal;
}

SecretBytes read_descriptor(int descriptor) {
  return read_line(descriptor, fmt::format("descriptor {}", descriptor), [] { return true; });
}

}  // namespace

SecretBytes ask_password(const PasswordSource& source, const std::string& prompt) {
  SecretBytes password =
      source.descriptor >= 0 ? read_descriptor(source.descriptor) : ask_on_terminal(open_terminal().get(), prompt);
  check(password);
  return password;
}

SecretBytes ask_new_password(const PasswordSource& source) {
  if (source.descriptor >= 0) return ask_password(source, "");
  SecretBytes password = ask_password(source, "Password for the new key: ");
  const SecretBytes again = ask_on_terminal(open_terminal().get(), "The same password again: ");
  if (again.size() != password.size() || sodium_memcmp(again.data(), password.data(), again.size()) != 0)
    throw UserError("the two passwords differ", kExitRefused);
  return password;
}

void say_deriving() {
  if (isatty(STDERR_FILENO) != 0) say(STDERR_FILENO, "deriving the key from the password…\n");
}

}  // namespace x0x::policyc
