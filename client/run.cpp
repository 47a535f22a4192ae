#include "client/run.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "client/report.hpp"
#include "client/sink.hpp"

namespace x0x::client {

namespace {

using Clock = std::chrono::steady_clock;

// While this much waits for a slow reader the socket is not read, and the enforcer stops reading the command.
constexpr std::size_t kMaxPending = 256u << 10;

class Runner {
 public:
  Runner(Connection& connection, const Session& session, const Terminal& terminal)
      : connection_(connection),
        terminal_(terminal),
        out_(terminal.out),
        err_(terminal.err),
        next_renewal_(Clock::now() + terminal.renew_every) {
    outcome_.session = session;
  }

  Outcome drive(const Request& request) {
    outcome_.timeout_ms = request.timeout_ms;
    connection_.send(encode_request(outcome_.session, request));
    terminal_.while_waiting();
    while (!finished()) turn();
    if (terminal_.out < 0) outcome_.out = out_.collected();
    if (terminal_.err < 0) outcome_.err = err_.collected();
    return std::move(outcome_);
  }

 private:
  bool session_over() const { return outcome_.exit || !outcome_.lost.empty(); }
  std::size_t pending() const { return out_.pending() + err_.pending(); }
  bool finished() const { return outcome_.left_on_signal != 0 || (session_over() && pending() == 0); }

  void turn() {
    const bool read_socket = !session_over() && pending() < kMaxPending;
    const auto socket_events =
        static_cast<short>((read_socket ? POLLIN : 0) | (connection_.wants_to_send() ? POLLOUT : 0));
    // A negative descriptor is skipped by poll(); one without events would still report a hang-up again and
    // again.
    std::array<pollfd, 4> waiting{{{terminal_.signals, POLLIN, 0},
                                   {out_.pending() > 0 ? out_.fd() : -1, POLLOUT, 0},
                                   {err_.pending() > 0 ? err_.fd() : -1, POLLOUT, 0},
                                   {socket_events != 0 ? connection_.fd() : -1, socket_events, 0}}};
    if (::poll(waiting.data(), waiting.size(), milliseconds_to_renewal()) < 0) return;  // EINTR: look again
    if (waiting[0].revents != 0) take_signal();
    out_.pump();
    err_.pump();
    if (waiting[3].revents != 0) talk(read_socket);
    check_output();
    renew();
  }

  int milliseconds_to_renewal() const {
    if (session_over()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_renewal_ - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
  }

  void renew() {
    if (session_over() || Clock::now() < next_renewal_) return;
    connection_.send(encode_renewal(outcome_.session));
    next_renewal_ = Clock::now() + terminal_.renew_every;
  }

  void take_signal() {
    signalfd_siginfo info{};
    if (::read(terminal_.signals, &info, sizeof info) != sizeof info) return;
    // After the Exit there is nothing to cancel: only unread output holds us.
    if (outcome_.cancelled_here || session_over())
      outcome_.left_on_signal = static_cast<int>(info.ssi_signo);
    else
      cancel();
  }

  void cancel() {
    outcome_.cancelled_here = true;
    connection_.send(encode_cancel(outcome_.session));
  }

  void check_output() {
    const int error = out_.error() != 0 ? out_.error() : err_.error();
    if (error == 0 || outcome_.output_error != 0) return;
    outcome_.output_error = error;
    if (!session_over() && !outcome_.cancelled_here) cancel();
  }

  void talk(bool read_socket) {
    connection_.flush();
    if (!read_socket) return;
    connection_.receive();
    try {
      while (!session_over()) {
        const std::optional<Bytes> message = connection_.next();
        if (!message) break;
        take(*message);
      }
    } catch (const Failure& failure) {
      outcome_.lost = failure.what();
    }
    if (!session_over() && connection_.closed()) outcome_.lost = explain_loss();
  }

  std::string explain_loss() const {
    if (outcome_.started)
      return "lost the enforcer: it closed the connection before the command's end (the command is killed "
             "with "
             "it; nothing is tried again)";
    return fmt::format(
        "lost the enforcer: it closed the connection before the command started (it may not allow uid {}; "
        "see "
        "`--allow-uid` in x0x-enforcer(8))",
        ::getuid());
  }

  void take(Bytes message) {
    Answer answer;
    const Malformed fault = decode_answer(message, answer);
    if (fault != Malformed::none)
      throw Failure(fmt::format("lost the enforcer: its answer cannot be read: {}", describe(fault)));
    if (answer.session != outcome_.session)
      throw Failure("lost the enforcer: it answered for a session that is not ours");
    std::visit([this](auto& frame) { on(frame); }, answer.frame);
  }

  void on(const Started&) { outcome_.started = true; }
  void on(const Output& output) {
    std::uint32_t& expected = output.stream == Stream::out ? next_out_ : next_err_;
    if (output.seq != expected++) throw Failure("lost the enforcer: a piece of the output is missing");
    (output.stream == Stream::out ? out_ : err_).write(as_text(output.data));
  }
  void on(Warning& warning) {
    // Our own cancel needs no warning: the last line will say it.
    const bool known = warning.kind == wire::WarningKind::cancelled && outcome_.cancelled_here;
    if (terminal_.err >= 0 && !known) err_.line(warning_line(warning, terminal_.err));
    outcome_.warnings.push_back(std::move(warning));
  }
  void on(const Exit& exit) { outcome_.exit = exit; }

  Connection& connection_;
  const Terminal& terminal_;
  Sink out_, err_;
  Clock::time_point next_renewal_;
  std::uint32_t next_out_ = 0, next_err_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome run(Connection& connection, const Session& session, const Request& request, const Terminal& terminal) {
  return Runner(connection, session, terminal).drive(request);
}

}  // namespace x0x::client
