// Which process of this user runs which session, so that `x0x-exec cancel ID` can find it.
//
// A session belongs to its connection, so only the process that holds it can cancel it. That process keeps a
// locked, empty file named after the request id in `$XDG_RUNTIME_DIR/x0x-exec/`, or where there is none (su, cron,
// containers) in `/dev/shm/x0x-exec-UID/`. The kernel drops the lock with the process and names its holder, so a file
// left behind by a crash points at nobody and a recycled process number is never signalled.
// tests/client/running_test.cpp shows both.
#pragma once

#include <string>

#include "client/codec.hpp"

namespace x0x::client {

// Empty when the one in /tmp belongs to somebody else or is open to others.
std::string running_directory();

// Lives as long as the session. Does nothing, silently, when there is no place for the file: only `cancel`
// needs it.
class RunningFile {
 public:
  RunningFile() = default;
  ~RunningFile();
  RunningFile(const RunningFile&) = delete;
  RunningFile& operator=(const RunningFile&) = delete;

  void open(const std::string& directory, const RequestId& id);

 private:
  int fd_ = -1;
  std::string path_;
};

// Sends SIGTERM to the process that runs the session and returns its number; Failure when there is none.
int cancel_running(const std::string& directory, const std::string& id);

}  // namespace x0x::client
