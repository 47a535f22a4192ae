// One session from Request to Exit: streams the output, renews the lease, turns signals into Cancel.
//
// It ends in one of four ways, and Outcome says which: an Exit, a lost enforcer, an answer that cannot be
// read, or a second signal. tests/client/run_test.cpp drives every one of them with an enforcer made of a
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/codec.hpp"
#include "client/connection.hpp"

namespace x0x::client {

struct Terminal {
  int out = 1;       // -1: collect for --json
  int err = 2;       // -1: collect for --json
  int signals = -1;  // a signalfd: each signal cancels; the second one leaves
  std::chrono::milliseconds renew_every{2000};
  std::function<void()> while_waiting = [] {};  // runs once, when the request has been sent
};

struct Outcome {
  Session session;
  std::uint32_t timeout_ms = 0;  // as requested
  bool started = false;
  std::optional<Exit> exit;
  std::string lost;             // why there is no Exit
  int left_on_signal = 0;       // the second signal: nobody waited for the Exit
  bool cancelled_here = false;  // by a signal or because the output had nowhere to go
  int output_error = 0;         // errno of a write to our own stdout or stderr
  std::vector<Warning> warnings;
  std::string out, err;  // when collecting
};

Outcome run(Connection& connection, const Session& session, const Request& request, const Terminal& terminal);

}  // namespace x0x::client
