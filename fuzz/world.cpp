#include "fuzz/world.hpp"

#include <algorithm>
#include <cstdarg>
#include <utility>

#include "enforcer/peers.hpp"

using namespace x0x;
using namespace x0x::fuzz;

namespace {

constexpr int kFirstFd = 1 << 20;  // what is below belongs to the real machine

World& world() { return *World::current; }
bool ours(int fd) { return World::current != nullptr && fd >= kFirstFd; }

World::Handle& handle(int fd) {
  promise(ours(fd) && static_cast<std::size_t>(fd - kFirstFd) < world().handles.size(), "a descriptor we gave");
  World::Handle& found = world().handles[static_cast<std::size_t>(fd - kFirstFd)];
  promise(found.open, "an open descriptor");
  return found;
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

Connection& connection(int fd) {
  promise(handle(fd).kind == Kind::connection, "a connection");
  return *world().connections[handle(fd).index];
}

File& file(int fd) {
  promise(handle(fd).kind == Kind::log, "a file");
  return world().files[handle(fd).index];
}

ssize_t store(File& f, std::size_t at, const void* bytes, std::size_t size) {
  if (size == 0) return 0;
  if (world().disk == Disk::refuses) return fail(ENOSPC);
  if (world().disk == Disk::interrupts) return world().disk = Disk::works, fail(EINTR);
  if (world().disk == Disk::takes_little) size = (size + 1) / 2, world().disk = Disk::refuses;
  if (f.content.size() < at + size) f.content.resize(at + size);
  std::memcpy(f.content.data() + at, bytes, size);
  f.dirty_from = f.dirty_from == f.dirty_to ? at : std::min(f.dirty_from, at);
  f.dirty_to = std::max(f.dirty_to, at + size);
  return static_cast<ssize_t>(size);
}

}  // namespace

World* World::current = nullptr;

World::World() { current = this; }
World::~World() { current = nullptr; }

int World::open(Kind kind, std::size_t index) {
  handles.push_back({kind, index});
  return fd_at(handles.size() - 1);
}

int World::fd_at(std::size_t handle) { return kFirstFd + static_cast<int>(handle); }

short World::readiness(int fd) {
  const Handle& found = handle(fd);
  const auto when = [](bool is_so, int bits) { return is_so ? bits : 0; };
  int bits = 0;
  if (found.kind == Kind::signals) bits = when(!signals.empty(), POLLIN);
  if (found.kind == Kind::listener) bits = when(!guests.empty(), POLLIN);
  if (found.kind == Kind::connection) {
    const Connection& c = *connections[found.index];
    bits = when(rumour || !c.inbox.empty() || c.hung_up, POLLIN) | when(c.room > 0, POLLOUT) |
           when(c.hung_up || c.reset, POLLHUP) | when(c.reset, POLLERR);
  }
  if (found.kind == Kind::pipe) {
    const Child& child = *children[found.index];
    if (fd == child.fds[kControl]) return static_cast<short>(when(child.news, POLLIN) | when(child.ended(), POLLHUP));
    const std::size_t stream = fd == child.fds[0] ? 0 : 1;
    bits = when(child.waiting[stream] > 0, POLLIN) | when(!child.open[stream], POLLHUP);
  }
  return static_cast<short>(bits);
}

// Whole lines that are on the disk now, by their number.
void World::synced(const File& file) {
  ++syncs;
  std::size_t torn = 0;
  for (std::string_view rest = file.disk; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (line.starts_with("{\"seq\":") && end != rest.npos) {
      const std::uint64_t seq = strtoull(line.data() + 7, nullptr, 10);
      const auto [at, fresh] = durable.try_emplace(seq, std::string(line), syncs);
      promise(fresh || at->second.first == line, "a durable record does not change");
    } else {
      ++torn;
    }
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  promise(torn == 0, "no line is torn unless the enforcer dies");
}

Connection& World::connect(std::uint32_t uid) {
  connections.push_back(std::make_unique<Connection>());
  connections.back()->uid = uid;
  guests.push_back(connections.back().get());
  return *connections.back();
}

void World::say(Connection& to, Bytes bytes) { to.inbox += as_text(bytes); }

void World::end(Child& child, int status) {
  child.dead = child.news = child.progress.gone = true;
  child.progress.status = status;
  child.progress.spent = !supervisors_stay;
  if (child.progress.failed == SpawnStep::none) child.progress.command = 1000 + static_cast<pid_t>(child.serial);
  for (bool& open : child.open) open = false;
}

Child* World::child_with(const Spawned& session) {
  for (const auto& child : children)
    for (int i = 0; i < 3; ++i)
      if (session.fds[i] >= 0 && session.fds[i] == child->fds[i]) return child.get();
  for (const auto& child : children)
    if (session.supervisor == child->supervisor && !child->reaped) return child.get();
  return nullptr;
}

// ---- processes

namespace x0x {

Progress spawn(const ChildPlan& plan, Spawned& out) {
  if (world().spawn_fails != SpawnStep::none)
    return {.failed = std::exchange(world().spawn_fails, SpawnStep::none), .error = EAGAIN};
  auto child = std::make_unique<Child>();
  Bytes rest = plan.argv_block;
  next_token(rest);
  child->serial = static_cast<std::uint32_t>(atoi(reinterpret_cast<const char*>(next_token(rest).data())));
  if (Child* const idle = out.supervisor > 0 ? world().child_with(out) : nullptr; idle != nullptr && !idle->lost) {
    promise(idle->progress.gone && !idle->progress.spent, "a supervisor has one session at a time");
    idle->reaped = true;  // by the next
    child->supervisor = out.supervisor;
    child->fds[kControl] = std::exchange(idle->fds[kControl], -1);
    handle(child->fds[kControl]).index = world().children.size();
  } else {
    if (idle != nullptr) close_session(out);
    out.supervisor = child->supervisor = 100 + static_cast<pid_t>(world().children.size());
    out.fds[kControl] = child->fds[kControl] = world().open(Kind::pipe, world().children.size());
  }
  for (int i = 0; i < 2; ++i) out.fds[i] = child->fds[i] = world().open(Kind::pipe, world().children.size());
  world().children.push_back(std::move(child));
  world().spawned(*world().children.back());
  return {};
}

int read_progress(const Spawned& session, Progress& progress) {
  Child& child = *world().child_with(session);
  if (std::exchange(child.news, false)) return progress = child.progress, 1;
  return child.ended() ? 0 : static_cast<int>(fail(EAGAIN));
}

void signal_session(const Spawned& session, SessionSignal signal) {
  Child* const child = world().child_with(session);
  promise(child != nullptr && !child->closed, "a signal goes to a session that is there");
  if (child->dead || child->lost) return;
  if (signal == SessionSignal::abandon) {
    child->lost = true;
  } else if (signal == SessionSignal::kill && !child->deaf) {
    world().end(*child, SIGKILL);
  }
}

void close_session(Spawned& session, bool another_may_follow) {
  if (session.supervisor < 0 && std::ranges::all_of(session.fds, [](int fd) { return fd < 0; })) return;  // never begun
  Child* const child = world().child_with(session);
  promise(child != nullptr, "a session that there was");
  if (session.fds[0] >= 0) promise(!std::exchange(child->closed, true), "a session is closed once");
  if (child->closed) promise(child->dead, "nothing of a session is alive after its end");
  for (const int i : {0, 1, kControl}) {
    if (i == kControl && another_may_follow) return;
    if (session.fds[i] >= 0) close(session.fds[i]);
    session.fds[i] = -1;
  }
  if (session.supervisor >= 0) promise(child->lost || child->progress.gone, "a supervisor is reaped when it has ended");
  if (session.supervisor >= 0) child->reaped = true;
  session.supervisor = -1;
}

int reap_strays(std::span<const pid_t> supervisors) {
  for (const auto& child : world().children)
    if (!child->reaped && !child->lost)
      promise(std::ranges::count(supervisors, child->supervisor) == 1, "a hunt spares the others");
  if (world().strays > 0) return world().strays--;
  for (const auto& child : world().children) {
    child->reaped = child->reaped || child->lost;
    child->dead = child->dead || child->reaped;
  }
  return 0;
}

int find_delegated_cgroup() { return -1; }
void remove_session_cgroups(int) {}

}  // namespace x0x

// ---- system calls

#define X0X_WRAP(result, name, ...)             \
  extern "C" result __real_##name(__VA_ARGS__); \
  extern "C" result __wrap_##name(__VA_ARGS__)

X0X_WRAP(int, clock_gettime, clockid_t clock, timespec* time) {
  if (World::current == nullptr || clock != CLOCK_BOOTTIME) return __real_clock_gettime(clock, time);
  *time = {static_cast<time_t>(world().now / 1000), static_cast<long>(world().now % 1000) * 1'000'000};
  return 0;
}

X0X_WRAP(int, signalfd, int fd, const sigset_t* mask, int flags) {
  return World::current == nullptr ? __real_signalfd(fd, mask, flags) : world().open(Kind::signals);
}
X0X_WRAP(int, poll, pollfd* fds, nfds_t count, int timeout) {
  if (World::current == nullptr) return __real_poll(fds, count, timeout);
  const auto look = [&] {
    int n = 0;
    for (pollfd& each : std::span(fds, count)) {
      each.revents = 0;
      promise(each.fd >= 0 && each.events != 0, "nothing is watched for nothing");
      each.revents = world().readiness(each.fd) & (each.events | POLLHUP | POLLERR);
      n += each.revents != 0;
    }
    return n;
  };
  promise(++world().turns < 20'000, "the enforcer comes to rest");
  world().wait(look() > 0 ? 0 : timeout);
  const int n = look();
  world().rumour = false;
  return n;
}

X0X_WRAP(int, accept4, int fd, sockaddr* address, socklen_t* size, int flags) {
  if (!ours(fd)) return __real_accept4(fd, address, size, flags);
  if (!world().descriptors_left) return static_cast<int>(fail(EMFILE));
  if (world().guests.empty()) return static_cast<int>(fail(EAGAIN));
  Connection& guest = *world().guests.front();
  world().guests.erase(world().guests.begin());
  const auto index = std::ranges::find(world().connections, &guest, [](auto& c) { return c.get(); });
  guest.accepted = true;
  return guest.fd = world().open(Kind::connection, static_cast<std::size_t>(index - world().connections.begin()));
}

X0X_WRAP(int, getsockopt, int fd, int level, int name, void* value, socklen_t* size) {
  if (!ours(fd)) return __real_getsockopt(fd, level, name, value, size);
  *static_cast<ucred*>(value) = {1, connection(fd).uid, 0};
  return 0;
}

X0X_WRAP(ssize_t, recv, int fd, void* room, size_t size, int flags) {
  if (!ours(fd)) return __real_recv(fd, room, size, flags);
  Connection& from = connection(fd);
  if (from.reset) return fail(ECONNRESET);
  const std::size_t n = std::min({size, from.piece, from.inbox.size()});
  if (n == 0) return from.hung_up ? 0 : fail(EAGAIN);
  std::memcpy(room, from.inbox.data(), n);
  from.inbox.erase(0, n);
  return static_cast<ssize_t>(n);
}

X0X_WRAP(ssize_t, send, int fd, const void* bytes, size_t size, int flags) {
  if (!ours(fd)) return __real_send(fd, bytes, size, flags);
  Connection& to = connection(fd);
  promise((flags & MSG_NOSIGNAL) != 0, "no peer can kill the enforcer with SIGPIPE");
  if (to.hung_up || to.reset) return fail(EPIPE);
  const std::size_t n = std::min(size, to.room);
  if (n == 0) return fail(EAGAIN);
  to.room -= n;
  to.outbox.append(static_cast<const char*>(bytes), n);
  to.sent.push_back({to.outbox.size(), world().syncs});
  return static_cast<ssize_t>(n);
}

X0X_WRAP(ssize_t, read, int fd, void* room, size_t size) {
  if (!ours(fd)) return __real_read(fd, room, size);
  if (handle(fd).kind == Kind::signals) {
    if (world().signals.empty()) return fail(EAGAIN);
    *static_cast<signalfd_siginfo*>(room) = {};
    static_cast<signalfd_siginfo*>(room)->ssi_signo = static_cast<std::uint32_t>(world().signals.front());
    world().signals.erase(world().signals.begin());
    return sizeof(signalfd_siginfo);
  }
  Child& child = *world().children[handle(fd).index];
  const std::size_t stream = fd == child.fds[0] ? 0 : 1;
  promise(fd == child.fds[stream], "a child's stdout or stderr");
  const std::size_t n = std::min(size, child.waiting[stream]);
  if (n == 0) return child.open[stream] ? fail(EAGAIN) : 0;
  std::memset(room, 'o', n);
  child.waiting[stream] -= n;
  return static_cast<ssize_t>(n);
}

X0X_WRAP(ssize_t, write, int fd, const void* bytes, size_t size) {
  if (!ours(fd)) return __real_write(fd, bytes, size);
  File& f = file(fd);
  if (f.appends) f.position = f.content.size();
  promise(f.position <= f.content.size(), "no hole");
  const ssize_t n = store(f, f.position, bytes, size);
  if (n > 0) f.position += static_cast<std::size_t>(n);
  return n;
}

X0X_WRAP(int, close, int fd) {
  if (!ours(fd)) return __real_close(fd);
  World::Handle& closed = handle(fd);
  closed.open = false;
  if (closed.kind == Kind::connection) world().connections[closed.index]->closed = true;
  if (closed.kind == Kind::connection) world().connections[closed.index]->fd = -1;
  if (closed.kind == Kind::pipe)
    for (int& end : world().children[closed.index]->fds) end = end == fd ? -1 : end;
  return 0;
}

// ---- the log

extern "C" int __real_open64(const char*, int, ...);
extern "C" int __wrap_open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  if (World::current == nullptr || std::strcmp(path, "log") != 0) return __real_open64(path, flags, mode);
  return world().open(Kind::log, world().files.size() - 1);
}
X0X_WRAP(int, fstat64, int fd, struct stat64* out) {
  if (!ours(fd)) return __real_fstat64(fd, out);
  *out = {};
  out->st_mode = S_IFREG | 0640;
  out->st_nlink = 1;
  out->st_ino = 1 + handle(fd).index;
  out->st_size = static_cast<off_t>(file(fd).content.size());
  return 0;
}
X0X_WRAP(int, stat64, const char* path, struct stat64* out) {
  if (World::current == nullptr || std::strcmp(path, "log") != 0) return __real_stat64(path, out);
  *out = {};
  out->st_mode = S_IFREG | 0640;
  out->st_nlink = 1;
  out->st_ino = world().files.size();
  return 0;
}
X0X_WRAP(int, flock, int fd, int what) { return ours(fd) ? 0 : __real_flock(fd, what); }
X0X_WRAP(off_t, lseek64, int fd, off_t offset, int from) {
  if (!ours(fd)) return __real_lseek64(fd, offset, from);
  promise(from == SEEK_CUR && file(fd).position >= static_cast<std::size_t>(-offset),
          "what is written again was there");
  return static_cast<off_t>(file(fd).position -= static_cast<std::size_t>(-offset));
}
X0X_WRAP(ssize_t, pread64, int fd, void* room, size_t size, off_t at) {
  if (!ours(fd)) return __real_pread64(fd, room, size, at);
  return static_cast<ssize_t>(file(fd).content.copy(static_cast<char*>(room), size, static_cast<std::size_t>(at)));
}
X0X_WRAP(int, fdatasync, int fd) {
  if (!ours(fd)) return __real_fdatasync(fd);
  File& f = file(fd);
  const std::size_t from = std::exchange(f.dirty_from, 0), to = std::exchange(f.dirty_to, 0);
  if (world().disk == Disk::fails_to_sync) return static_cast<int>(fail(EIO));
  if (f.disk.size() < to) f.disk.resize(to, '?');
  f.disk.replace(from, to - from, f.content, from, to - from);
  world().synced(f);
  return 0;
}

extern "C" int __real_fcntl64(int, int, ...);
extern "C" int __wrap_fcntl64(int fd, int what, ...) {
  va_list more;
  va_start(more, what);
  void* const value = va_arg(more, void*);
  va_end(more);
  if (!ours(fd)) return __real_fcntl64(fd, what, value);
  promise(what == F_SETFL, "a log that appends, or not");
  file(fd).appends = (reinterpret_cast<std::uintptr_t>(value) & O_APPEND) != 0;
  return 0;
}
