// A machine made of memory: the clock, the disk, the connections and the children of one enforcer.
//
// The programs of this directory are linked with --wrap, so that the enforcer's own object code does its system calls
// here; world.cpp also stands in for the functions that start and watch processes. Nothing of this is in a release.
// The world is strict: a descriptor that is not open, a child that is left or started too early breaks a promise.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "enforcer/audit.hpp"
#include "enforcer/spawn.hpp"
#include "fuzz/target.hpp"

namespace x0x::fuzz {

enum class Kind { signals, listener, log, connection, pipe };

// The far end of a socket.
struct Connection {
  struct Sent {
    std::size_t end;      // of what had been sent by then
    std::uint64_t syncs;  // how many times the disk had taken everything by then
  };
  int fd = -1;
  std::uint32_t uid = 0;
  std::string inbox, outbox;  // to the enforcer, from it
  std::vector<Sent> sent;
  std::size_t piece = ~std::size_t{0}, room = 1u << 20;  // read at most this at once; takes this much more
  bool accepted = false, hung_up = false, reset = false, closed = false;
};

struct Child {
  std::uint32_t serial = 0;  // the number in its argv
  Progress progress;
  pid_t supervisor = 0;
  int fds[3] = {-1, -1, -1};
  std::size_t waiting[2] = {}, written[2] = {};  // bytes in its pipes, and ever written
  bool open[2] = {true, true};
  bool news = false, lost = false, deaf = false;  // lost: its supervisor was killed; deaf: that does not obey
  bool dead = false, reaped = false, closed = false;
  bool ended() const { return lost || progress.spent; }  // its supervisor has
};

// A file. What is written can be read at once, but only a sync that succeeds takes it to the disk, and one that fails
// forgets it.
struct File {
  std::string content, disk;
  std::size_t dirty_from = 0, dirty_to = 0, position = 0;
  bool appends = true;
};

enum class Disk : std::uint8_t { works, refuses, takes_little, fails_to_sync, interrupts };

struct World {
  World();
  virtual ~World();
  static World* current;

  // What happens when the enforcer waits, which it does for no time when something is ready.
  virtual void wait(int timeout) = 0;

  int open(Kind kind, std::size_t index = 0);
  static int fd_at(std::size_t handle);
  short readiness(int fd);  // what poll() says of it now
  void synced(const File& file);

  Connection& connect(std::uint32_t uid);
  void say(Connection& to, Bytes bytes);
  void end(Child& child, int status);  // of its command and of all it started
  Child* child_with(const Spawned& session);

  struct Handle {
    Kind kind;
    std::size_t index;
    bool open = true;
  };
  std::uint64_t now = 1'000'000;
  std::vector<Handle> handles;
  bool rumour = false;              // poll() says once of every connection that it is ready
  std::vector<Connection*> guests;  // not accepted yet
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Child>> children;
  std::vector<File> files = std::vector<File>(1);  // the log, and what it was called before it was rotated
  std::vector<int> signals;
  Disk disk = Disk::works;
  SpawnStep spawn_fails = SpawnStep::none;
  bool supervisors_stay = false;  // when their session has ended
  bool descriptors_left = true;
  int strays = 0;  // how many times a hunt finds somebody still
  std::uint64_t syncs = 0, turns = 0;
  std::map<std::uint64_t, std::pair<std::string, std::uint64_t>>
      durable;  // by seq: a record, and the sync it came with

  virtual void spawned(const Child&) {}
};

}  // namespace x0x::fuzz
