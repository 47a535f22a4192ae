// x0x-exec: asks the enforcer to run a command and behaves as if the command had run here.
//
// tests/client/program_test.cpp runs this program against an enforcer made for the test.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "client/connection.hpp"
#include "client/input.hpp"
#include "client/inspect.hpp"
#include "client/options.hpp"
#include "client/report.hpp"
#include "client/run.hpp"
#include "client/running.hpp"

namespace x0x::client {

namespace {

// A descriptor closed by our caller would be taken by the next socket, and output would go into the protocol.
// What takes its place cannot be read or written, so the mistake is reported as one.
void occupy_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) ::_exit(kOwnFailure);
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      throw Failure(fmt::format("cannot write the output: {}", std::strerror(errno)));
  }
}

void say(std::string_view kind, std::string_view why) {
  const std::string line = error_line(kind, why, 2) + "\n";
  if (::write(2, line.data(), line.size()) < 0) return;  // nobody to tell
}

RequestId new_request_id() {
  RequestId id{};
  if (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
    throw Failure(fmt::format("cannot get random bytes: {}", std::strerror(errno)));
  id[6] = static_cast<std::uint8_t>((id[6] & 0x0f) | 0x40);  // a random UUID: version 4, variant 1
  id[8] = static_cast<std::uint8_t>((id[8] & 0x3f) | 0x80);
  return id;
}

// From here on these signals wait to be read. One that our caller ignores (nohup) stays ignored.
int take_over_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

int run_command(Options& options) {
  complete(options.settings, environment_of_process(), Needs::ids_too);
  Session session;
  session.pair.agent = parse_id(*options.settings.agent, "agent");
  session.pair.machine = parse_id(*options.settings.machine, "machine");
  session.request_id = new_request_id();
  Request request;
  request.argv = std::move(options.argv);
  request.timeout_ms = options.timeout_ms;
  if (!options.stdin_file.empty()) request.stdin_bytes = read_input(options.stdin_file);
  check_size(session, request);

  Connection connection(connect_to(*options.settings.socket));
  RunningFile running;
  Terminal terminal;
  terminal.signals = take_over_signals();
  if (options.json) terminal.out = terminal.err = -1;
  terminal.while_waiting = [&] { running.open(running_directory(), session.request_id); };
  const Outcome outcome = run(connection, session, request, terminal);
  const Ending ending = ending_of(outcome);
  if (!ending.kind.empty()) say(ending.kind, ending.why);
  if (options.json) write_all(1, result_json(outcome, ending) + "\n");
  return ending.status;
}

int ask_enforcer(Options& options) {
  complete(options.settings, environment_of_process(), Needs::socket_only);
  Connection connection(connect_to(*options.settings.socket));
  const bool sessions = options.action == Action::sessions;
  const std::string document = ask(connection, sessions ? wire::kKindSessions : wire::kKindDiagnostics);
  write_all(1, sessions ? show_sessions(document, options.format) : show_diagnostics(document, options.format));
  return 0;
}

int act(Options options) {
  switch (options.action) {
    case Action::help:
      write_all(1, help_text());
      return 0;
    case Action::version:
      write_all(1, "x0x-exec " X0X_VERSION "\n");
      return 0;
    case Action::run:
      return run_command(options);
    case Action::sessions:
    case Action::diagnostics:
      return ask_enforcer(options);
    case Action::cancel:
      write_all(1, fmt::format("told process {} to cancel\n", cancel_running(running_directory(), options.cancel_id)));
      return 0;
  }
  return kOwnFailure;
}

}  // namespace

}  // namespace x0x::client

int main(int argc, char** argv) {
  using namespace x0x::client;
  occupy_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return act(parse_options(argc, argv));
  } catch (const std::exception& failure) {
    say("error", failure.what());
    return kOwnFailure;
  }
}
