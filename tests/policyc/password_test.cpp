#include "policyc/password.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>

#include "policyc/user_error.hpp"
#include "tests/support/password_pipe.hpp"

namespace x0x::policyc {
namespace {

// A child that asks for a password on a terminal of its own, and the far end of that terminal.
class Asking {
 public:
  explicit Asking(bool twice) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    REQUIRE(child_ >= 0);
    if (child_ == 0) ask(twice);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  ~Asking() {
    close(terminal_);
    if (!waited_) waitpid(child_, nullptr, 0);
  }

  // Reads what the terminal shows until `text` is there. The bound only ends a test that hangs.
  void expect(const std::string& text) {
    while (shown.find(text, seen_) == std::string::npos) {
      pollfd input{terminal_, POLLIN, 0};
      REQUIRE_MESSAGE(poll(&input, 1, 60'000) == 1, "the terminal shows: ", shown);
      char buffer[256];
      const ssize_t got = read(terminal_, buffer, sizeof buffer);
      REQUIRE_MESSAGE(got > 0, "the terminal shows: ", shown);
      shown.append(buffer, static_cast<std::size_t>(got));
    }
    seen_ = shown.find(text, seen_) + text.size();
  }
  void type(const std::string& text) {
    REQUIRE(write(terminal_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  bool echoes() const {
    termios state{};
    REQUIRE(tcgetattr(terminal_, &state) == 0);
    return (state.c_lflag & ECHO) != 0;
  }
  void send(int signal_number) const { kill(child_, signal_number); }
  int wait_status(int flags = 0) {
    int status = 0;
    REQUIRE(waitpid(child_, &status, flags) == child_);
    waited_ = !WIFSTOPPED(status);
    return status;
  }

  std::string shown;

 private:
  [[noreturn]] static void ask(bool twice) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, SIG_DFL);  // not doctest's
    try {
      const SecretBytes password =
          twice ? ask_new_password(PasswordSource{}) : ask_password(PasswordSource{}, "Password: ");
      _exit(password.text() == "open sesame" ? 0 : 1);
    } catch (const UserError& error) {
      if (write(1, error.what(), std::strlen(error.what())) < 0) _exit(3);
      _exit(2);
    }
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  bool waited_ = false;
  std::size_t seen_ = 0;
};

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

TEST_CASE("a password is read from the terminal and not shown") {
  Asking child(false);
  child.expect("Password: ");
  CHECK_FALSE(child.echoes());
  child.type("open sesame\n");
  child.expect("\n");
  CHECK(exit_code(child.wait_status()) == 0);
  CHECK(child.echoes());
  CHECK(child.shown.find("sesame") == std::string::npos);
}

TEST_CASE("a new password is asked twice and must be the same") {
  for (const bool same : {true, false}) {
    Asking child(true);
    child.expect("Password for the new key: ");
    child.type("open sesame\n");
    child.expect("The same password again: ");
    child.type(same ? "open sesame\n" : "open barley\n");
    if (!same) child.expect("the two passwords differ");
    child.expect(same ? "\n" : "");
    CHECK(exit_code(child.wait_status()) == (same ? 0 : 2));
  }
}

TEST_CASE("an interrupted prompt leaves the terminal as it was, and the signal does what it does") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Asking child(false);
    child.expect("Password: ");
    CHECK_FALSE(child.echoes());
    child.send(number);
    child.expect("\n");
    const int status = child.wait_status();
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
    CHECK(child.echoes());
  }
}

TEST_CASE("Ctrl-C is heard while the echo is off") {
  Asking child(false);
  child.expect("Password: ");
  child.type("half\x03");
  const int status = child.wait_status();
  CHECK(WIFSIGNALED(status));
  CHECK(child.echoes());
}

TEST_CASE("a prompt that was stopped gives the terminal back and asks again when it goes on") {
  Asking child(false);
  child.expect("Password: ");
  // The child leads its session, so the kernel would ignore the default action of SIGTSTP; SIGCONT alone is
  // not needed then, and the prompt simply comes again.
  child.send(SIGTSTP);
  child.expect("Password: ");
  CHECK_FALSE(child.echoes());
  child.type("open sesame\n");
  child.expect("\n");
  CHECK(exit_code(child.wait_status()) == 0);
  CHECK(child.echoes());
}

TEST_CASE("an empty answer is refused") {
  Asking child(false);
  child.expect("Password: ");
  child.type("\n");
  child.expect("the password is empty");
  CHECK(exit_code(child.wait_status()) == 2);
}

TEST_CASE("without a terminal the message says what to do") {
  const pid_t child = fork();
  if (child == 0) {
    setsid();  // no controlling terminal from here on
    try {
      ask_password(PasswordSource{}, "");
    } catch (const UserError& error) {
      _exit(std::strstr(error.what(), "--password-fd") != nullptr && error.exit_code == kExitUsage ? 0 : 1);
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(exit_code(status) == 0);
}

TEST_CASE("a descriptor gives its first line and keeps the rest") {
  const PasswordPipe pipe("first\nsecond\nthird");
  CHECK(ask_new_password(pipe.source()).text() == "first");
  CHECK(ask_password(pipe.source(), "").text() == "second");
  CHECK(ask_password(pipe.source(), "").text() == "third");
  CHECK_THROWS_AS(ask_password(pipe.source(), ""), UserError);
}

TEST_CASE("a password has no NUL and is not longer than minisign reads") {
  const auto ask = [](const std::string& text) {
    const PasswordPipe pipe(text);
    return ask_password(pipe.source(), "").size();
  };
  CHECK_THROWS_AS(ask(std::string("a\0b", 3)), UserError);
  CHECK(ask(std::string(kMaxPasswordBytes, 'x')) == kMaxPasswordBytes);
  CHECK(ask(std::string(kMaxPasswordBytes, 'x') + "\n") == kMaxPasswordBytes);
  CHECK_THROWS_AS(ask(std::string(kMaxPasswordBytes + 1, 'x')), UserError);
}

}  // namespace
}  // namespace x0x::policyc
