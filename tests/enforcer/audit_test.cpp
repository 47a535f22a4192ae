#include "enforcer/audit.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scratch.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using x0x::policyc::Scratch;

// This program is linked with --wrap=fdatasync, so that a disk can fail at a chosen moment.
static int failing_syncs = 0;
extern "C" int __real_fdatasync(int fd);
extern "C" int __wrap_fdatasync(int fd) {
  if (failing_syncs == 0) return __real_fdatasync(fd);
  --failing_syncs;
  errno = EIO;
  return -1;
}

namespace {

// A log in a directory of its own.
struct Log {
  Scratch scratch;
  std::string path = scratch.path("exec.log");
  std::vector<char> queue = std::vector<char>(kAuditQueueBytes);

  Fault open(Audit& audit) { return audit.open(path.c_str(), queue); }

  // What the end of a process does: its descriptors of the log, and with them the lock, are gone.
  void forget() {
    struct stat here {
    }, there{};
    stat(path.c_str(), &here);
    for (int fd = 3; fd < 256; ++fd)
      if (fstat(fd, &there) == 0 && there.st_ino == here.st_ino && there.st_dev == here.st_dev) close(fd);
  }
  std::vector<std::string> lines(const char* name = "exec.log") {
    std::vector<std::string> found;
    std::istringstream in(scratch.text(name));
    for (std::string line; std::getline(in, line);) found.push_back(line);
    return found;
  }
};

template <class... Values>
void record(Audit& audit, std::string_view event, const char* format = "", const Values&... values) {
  audit.append(audit.begin(event).write(format, values...));
}

std::string hash(const std::string& line) {
  const Digest digest = digest_of(test::bytes(line));
  std::string hex;
  for (const std::uint8_t b : digest.bytes) {
    hex += "0123456789abcdef"[b >> 4];
    hex += "0123456789abcdef"[b & 15];
  }
  return hex;
}

// Every record follows the one before; lines that end in `~` are torn and are counted by the next record.
void check_chain(const std::vector<std::string>& lines, std::size_t first_seq = 0,
                 std::string prev = std::string(64, '0')) {
  std::size_t torn = 0;
  for (const std::string& line : lines) {
    if (line.ends_with('~')) {
      torn += line.size();
      continue;
    }
    const auto record = nlohmann::json::parse(line);
    CHECK(record["seq"] == first_seq++);
    CHECK(record["prev"] == prev);
    CHECK(record.value("torn_bytes", std::size_t{0}) == torn);
    torn = 0;
    prev = hash(line);
  }
  CHECK(torn == 0);
}

// Files of this process cannot grow beyond `bytes` while it lives.
struct FileLimit {
  explicit FileLimit(std::size_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before); }
  rlimit before{};
};

}  // namespace

TEST_CASE("a fresh log starts with seq 0 and 64 zeros, has mode 0640, and is chained") {
  Log log;
  umask(027);
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded", ",'enabled':%", true);
  record(audit, "malformed", ",'request_id':%", Hex{});
  CHECK(audit.waiting());
  CHECK(log.lines().empty());  // nothing before flush
  REQUIRE(audit.flush());
  CHECK_FALSE(audit.waiting());
  CHECK(log.lines().size() == 2);
  CHECK(log.lines()[0].starts_with(R"({"seq":0,"prev":"0000000000)"));
  CHECK(nlohmann::json::parse(log.lines()[0])["event"] == "policy_loaded");
  check_chain(log.lines());
  struct stat file {};
  stat(log.path.c_str(), &file);
  CHECK((file.st_mode & 07777) == 0640);
}

TEST_CASE("a record that nothing waits for rides with the next flush") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  audit.append(audit.begin("started").write(",'pid':%", 1u), false);
  CHECK_FALSE(audit.waiting());
  CHECK(audit.pending());
  record(audit, "exit");
  REQUIRE(audit.flush());
  check_chain(log.lines());
  CHECK(log.lines().size() == 2);
}

TEST_CASE("the chain goes on after a restart") {
  Log log;
  for (int start = 0; start < 3; ++start) {
    Audit audit;
    REQUIRE(log.open(audit) == Fault::none);
    record(audit, "policy_loaded");
    record(audit, "stopped");
    REQUIRE(audit.flush());
    log.forget();
  }
  CHECK(log.lines().size() == 6);
  check_chain(log.lines());
}

TEST_CASE(
    "crash in mid-line: whatever part of the last lines is there, it is closed off and counted, never "
    "deleted") {
  std::string whole;
  {
    Log log;
    Audit audit;
    REQUIRE(log.open(audit) == Fault::none);
    for (int i = 0; i < 3; ++i) {
      record(audit, "request", ",'rule':{'entry':%},'matched_acl':%", 0u, "} \" \\ {");
    }
    REQUIRE(audit.flush());
    whole = log.scratch.text("exec.log");
  }
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    Log log;
    log.scratch.put("exec.log", whole.substr(0, cut));
    {
      Audit audit;
      REQUIRE(log.open(audit) == Fault::none);
      record(audit, "policy_loaded");
      REQUIRE(audit.flush());
    }
    const std::string now = log.scratch.text("exec.log");
    REQUIRE(now.starts_with(whole.substr(0, cut)));
    check_chain(log.lines());
  }
}

TEST_CASE("crash while a torn line is closed off: every part of that can be recovered from too") {
  const std::string torn = "{\"seq\":0,\"prev\":\"00";
  std::string closed;
  {
    Log log;
    log.scratch.put("exec.log", torn);
    Audit audit;
    REQUIRE(log.open(audit) == Fault::none);
    record(audit, "policy_loaded");
    REQUIRE(audit.flush());
    closed = log.scratch.text("exec.log");
    CHECK(closed.starts_with(torn + "~\n{\"seq\":0,"));
  }
  for (std::size_t cut = torn.size(); cut <= closed.size(); ++cut) {
    Log log;
    log.scratch.put("exec.log", closed.substr(0, cut));
    Audit audit;
    REQUIRE(log.open(audit) == Fault::none);
    record(audit, "policy_loaded");
    REQUIRE(audit.flush());
    check_chain(log.lines());
  }
}

TEST_CASE("a symlinked log, a directory and a missing directory are refused") {
  Log log;
  Audit audit;
  log.scratch.put("elsewhere", "");
  REQUIRE(symlink(log.scratch.path("elsewhere").c_str(), log.path.c_str()) == 0);
  CHECK(log.open(audit) == Fault::audit_not_writable);
  Audit second;
  CHECK(second.open(log.scratch.path(".").c_str(), log.queue) == Fault::audit_not_writable);
  Audit third;
  CHECK(third.open(log.scratch.path("no/such.log").c_str(), log.queue) == Fault::audit_not_writable);
}

TEST_CASE("a log of somebody else is not continued, and a log in use is not shared") {
  Log log;
  log.scratch.put("exec.log", "{\"ts\":\"2026\",\"event\":\"request\"}\n");
  Audit audit;
  CHECK(log.open(audit) == Fault::audit_not_ours);
  Log huge;
  huge.scratch.put("exec.log", std::string(kAuditTailBytes + 10, 'x'));
  Audit other;
  CHECK(huge.open(other) == Fault::audit_not_ours);
  Log shared;
  Audit first, second;
  REQUIRE(shared.open(first) == Fault::none);
  CHECK(shared.open(second) == Fault::audit_in_use);
}

TEST_CASE("disk full and short writes: degraded, nothing lost, nothing torn, and told when it is over") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  REQUIRE(audit.flush());
  {
    const FileLimit full(log.scratch.text("exec.log").size() + 30);
    record(audit, "request", ",'request_id':%", Hex{});
    CHECK_FALSE(audit.flush());
    CHECK(audit.degraded());
    CHECK(audit.waiting());
    record(audit, "exit", ",'code':%", 0u);
    CHECK_FALSE(audit.flush());
    audit.count_unrecorded();
    audit.count_unrecorded();
    CHECK(audit.failures() == 2);
  }
  REQUIRE(audit.flush());
  CHECK_FALSE(audit.degraded());
  check_chain(log.lines());
  REQUIRE(log.lines().size() == 4);
  const auto last = nlohmann::json::parse(log.lines()[3]);
  CHECK(last["event"] == "audit_recovered");
  CHECK(last["unrecorded"] == 2);
}

TEST_CASE("EIO from fdatasync: the same bytes are written to the same place again") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  failing_syncs = 2;
  CHECK_FALSE(audit.flush());
  record(audit, "request");
  CHECK_FALSE(audit.flush());
  CHECK(audit.degraded());
  REQUIRE(audit.flush());
  CHECK(log.lines().size() == 3);
  check_chain(log.lines());
}

TEST_CASE("EIO, then a disk that fills in the middle of what is written again: it all goes to the same place") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  REQUIRE(audit.flush());
  const std::size_t durable = log.scratch.text("exec.log").size();
  for (int i = 0; i < 3; ++i) record(audit, "request", ",'request_id':%", Hex{});
  failing_syncs = 1;
  CHECK_FALSE(audit.flush());
  for (const std::size_t room : {50, 0, 300}) {
    const FileLimit full(durable + room);
    CHECK_FALSE(audit.flush());
  }
  REQUIRE(audit.flush());
  CHECK(log.lines().size() == 5);
  check_chain(log.lines());
  record(audit, "stopped");
  REQUIRE(audit.flush());
  check_chain(log.lines());
}

TEST_CASE("EIO in a file that may only be appended to: nothing is durable until there is another") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  const int fd = open(log.path.c_str(), O_RDONLY | O_CLOEXEC);
  int flags = FS_APPEND_FL;
  if (ioctl(fd, FS_IOC_SETFLAGS, &flags) != 0) {
    close(fd);
    MESSAGE("this user or file system cannot make a file append-only: not shown here");
    return;
  }
  failing_syncs = 1;
  CHECK_FALSE(audit.flush());
  record(audit, "exit");
  for (int i = 0; i < 3; ++i) CHECK_FALSE(audit.flush());
  CHECK(log.lines().size() == 1);
  flags = 0;
  REQUIRE(ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0);
  close(fd);
  CHECK_FALSE(audit.flush());  // now it can go back to where it was lost
  REQUIRE(audit.flush());
  CHECK(log.lines().size() == 3);
  check_chain(log.lines());
}

TEST_CASE("once the disk works again, records are only ever added at the end") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  failing_syncs = 1;
  CHECK_FALSE(audit.flush());
  REQUIRE(audit.flush());
  log.scratch.put("exec.log", "");  // what logrotate's copytruncate does
  record(audit, "stopped");
  REQUIRE(audit.flush());
  CHECK(log.lines().size() == 1);
  CHECK(log.lines()[0].starts_with("{\"seq\":2,"));
}

TEST_CASE("logrotate: the chain carries on in the new file; without SIGHUP the old one is still written") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  record(audit, "policy_loaded");
  REQUIRE(audit.flush());
  REQUIRE(rename(log.path.c_str(), log.scratch.path("old").c_str()) == 0);
  record(audit, "request");
  REQUIRE(audit.flush());
  CHECK(log.lines("old").size() == 2);
  REQUIRE(audit.reopen() == Fault::none);
  record(audit, "exit");
  REQUIRE(audit.flush());
  check_chain(log.lines("old"));
  check_chain(log.lines(), 2, hash(log.lines("old")[1]));
  CHECK(nlohmann::json::parse(log.lines()[0])["event"] == "log_reopened");

  REQUIRE(audit.reopen() == Fault::none);  // the file is the same: it simply goes on
  REQUIRE(audit.flush());
  check_chain(log.lines(), 2, hash(log.lines("old")[1]));
  CHECK(log.lines().size() == 3);
}

TEST_CASE("a log that cannot be reopened stays the one it was") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  REQUIRE(rename(log.path.c_str(), log.scratch.path("old").c_str()) == 0);
  REQUIRE(symlink("old", log.path.c_str()) == 0);
  CHECK(audit.reopen() == Fault::audit_not_writable);
  record(audit, "exit");
  REQUIRE(audit.flush());
  CHECK(log.lines("old").size() == 1);
}

TEST_CASE("argv in a record: whole tokens, a bound, a mark and the digest") {
  std::string buffer(1 << 20, ' ');
  const auto recorded = [&](const std::vector<std::string>& argv, bool hidden) {
    std::string block;
    for (const std::string& token : argv) block += token + '\0';
    Json json({buffer.data(), buffer.size()});
    json.write("{'':0");
    write_argv(json, test::bytes(block), hidden);
    json.write("}");
    REQUIRE_FALSE(json.full());
    auto parsed = nlohmann::json::parse(json.view());
    parsed.erase("");
    if (parsed.contains("argv_blake2b")) CHECK(parsed["argv_blake2b"] == hash(block));
    return parsed;
  };
  CHECK(recorded({"echo", "a b"}, false).dump() == R"({"argv":["echo","a b"]})");
  CHECK(recorded({}, false).dump() == R"({"argv":[]})");
  const auto hidden = recorded({"login", "secret"}, true);
  CHECK(hidden.size() == 1);
  CHECK(hidden.contains("argv_blake2b"));

  const auto fits = recorded({std::string(kMaxJsonText - 1, '\n')}, false);
  CHECK_FALSE(fits.contains("argv_truncated"));
  auto cut = recorded({"a", std::string(kMaxJsonText, '\n'), "b"}, false);
  CHECK(cut["argv"] == nlohmann::json({"a"}));
  CHECK(cut["argv_truncated"] == true);
  CHECK(cut.contains("argv_blake2b"));
  cut = recorded(std::vector<std::string>(kMaxJsonText, "x"), false);
  CHECK(cut["argv"].size() == kMaxJsonText / 2);
  CHECK(cut["argv_truncated"] == true);
}

TEST_CASE("a queue that is full fails closed") {
  Log log;
  Audit audit;
  REQUIRE(log.open(audit) == Fault::none);
  const std::string large(kMaxJsonText, 'x');
  for (std::size_t i = 0; i < kAuditQueueBytes / kMaxJsonText - 1; ++i) record(audit, "request", ",'huge':%", large);
  CHECK_FALSE(audit.degraded());
  record(audit, "request", ",'huge':%", large);
  CHECK(audit.degraded());
  CHECK(audit.waiting());
  REQUIRE(audit.flush());
  check_chain(log.lines());
}
