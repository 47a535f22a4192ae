#include "enforcer/server.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace x0x {

using namespace wire;

namespace {

constexpr std::string_view kWarningMessages[] = {
    "stdout cap reached; further output is counted and dropped",
    "stderr cap reached; further output is counted and dropped",
    "the session is near its duration cap",
    "stdout is near its cap",
    "stderr is near its cap",
    "the lease was not renewed; the session is being ended",
    "the peer has gone; the session is being ended",
    "the session was cancelled and is being ended",
};

// What an epoll event is about: a role, and above it the number of a peer or slot.
enum Role : std::uint32_t { kListener, kSignals, kPeer, kControl, kStdin, kStdout, kStderr, kRoles };

std::uint64_t boot_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

class Server {
 public:
  explicit Server(const ServerConfig& config)
      : config_(config),
        audit_(*config.audit),
        listener_(config.listener),
        now_(boot_milliseconds()),
        boot_time_(unix_milliseconds() - now_),
        cgroup_(find_delegated_cgroup()) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    watch(signals_, signals_watched_, EPOLLIN, kSignals);
  }

  int run() {
    notify_systemd("READY=1");
    while (!done()) {
      epoll_event events[64];
      settle();
      const int n = epoll_wait(epoll_, events, 64, timeout());
      now_ = boot_milliseconds();
      for (int i = 0; i < n; ++i) dispatch(events[i].data.u64, events[i].events);
      if (guests_ && !stopping_ && !peers_.accept(listener_, config_.allowed_uids, now_))
        accept_after_ = now_ + 1000;
      guests_ = false;  // only now: a new peer must not get an old one's events
    }
    audit_.begin("stopped");
    audit_.finish();
    if (cgroup_ >= 0) remove_session_cgroups(cgroup_, kMaxSessions);
    return audit_.flush() ? 0 : 1;
  }

 private:
  // ---- the turn ----------------------------------------------------------------------------------------

  void watch(int fd, std::uint32_t& watched, std::uint32_t wanted, std::uint32_t role,
             std::size_t index = 0) {
    if (watched == wanted || fd < 0) return;
    epoll_event event{.events = wanted, .data = {.u64 = index * kRoles + role}};
    epoll_ctl(epoll_, watched == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, &event);
    watched = wanted;
  }

  void dispatch(std::uint64_t what, std::uint32_t events) {
    const auto index = static_cast<std::uint32_t>(what / kRoles),
               role = static_cast<std::uint32_t>(what % kRoles);
    if (role == kListener) guests_ = true;
    if (role == kSignals) take_signals();
    if (role == kPeer) take_messages(index, events);
    if (role < kControl || slots_[index].session.stage == Stage::free) return;
    Slot& slot = slots_[index];
    if (role == kControl) take_events(slot);
    if (role == kStdin) write_stdin(slot);
    if (role >= kStdout) read_stream(slot, role - kStdout, true);
  }

  // Records first, then what waited for them, then the sockets.
  void settle() {
    for (Slot& slot : slots_)
      if (slot.session.stage != Stage::free) step(slot);
    if (!expired_ && config_.table != nullptr && !in_window(*config_.table, wall_secs())) {
      expired_ = true;
      audit_.begin("policy_expired").key("policy").hex(config_.digest.bytes);
      audit_.finish();
    }
    if (!audit_.pending()) ride_until_ = now_ + 1000;  // how long a record that nothing waits for may wait
    if (audit_.degraded() ? now_ >= retry_at_ : audit_.waiting() || now_ >= ride_until_) audit_.flush();
    if (audit_.degraded() && now_ >= retry_at_) retry_at_ = now_ + 1000;
    const bool durable = !audit_.waiting();
    for (Slot& slot : slots_) {
      if (slot.session.stage == Stage::finished && durable) release(slot);
      if (slot.session.stage == Stage::accepted) durable ? launch(slot) : refuse(slot);
    }
    for (std::uint32_t i = 0; i < kMaxPeers; ++i)
      if (peers_[i].fd >= 0) settle_peer(i);
    for (std::uint32_t i = 0; i < kMaxSessions; ++i)
      if (slots_[i].session.stage != Stage::free) watch_slot(slots_[i], i);
    watch(listener_, listener_watched_, !stopping_ && now_ >= accept_after_ ? EPOLLIN : 0u, kListener);
  }

  void settle_peer(std::uint32_t index) {
    Peer& peer = peers_[index];
    peers_.send_unsent(peer, now_);
    if (peer.dead) {
      leave(index);
      watch(peer.fd, peer.watched, 0, kPeer);
      return peers_.close(peer);
    }
    const bool listens = peer.listens() && (audit_.has_room() || audit_.degraded());
    watch(peer.fd, peer.watched,
          (listens ? EPOLLIN : 0u) | (peer.unsent_size > 0 ? EPOLLOUT : 0u) | EPOLLRDHUP, kPeer, index);
  }

  int timeout() {
    if (audit_.waiting() && !audit_.degraded()) return 0;
    std::uint64_t next =
        now_ + (audit_.pending() || audit_.degraded() || now_ < accept_after_ ? 1000 : 60000);
    for (const Slot& slot : slots_) {
      if (slot.session.stage == Stage::free) continue;
      next = std::min(next, slot.orphaned ? now_ + 20 : slot.session.next_deadline(now_));
    }
    for (std::uint32_t i = 0; i < kMaxPeers; ++i)
      if (peers_[i].leaving) next = std::min(next, now_ + kFarewellMs);
    if (stopping_) next = std::min(next, stop_by_);
    return static_cast<int>(next - now_);
  }

  bool done() {
    if (!stopping_ || now_ >= stop_by_) return stopping_;
    for (const Slot& slot : slots_)
      if (slot.session.stage != Stage::free) return false;
    for (std::uint32_t i = 0; i < kMaxPeers; ++i)
      if (peers_[i].unsent_size > 0) return false;
    return true;
  }

  void take_signals() {
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGHUP) {
      if (const Fault fault = audit_.reopen(); fault != Fault::none)
        std::fprintf(stderr, "x0x-enforcer: audit log: %s: %s; still writing the old file\n",
                     fault_name(fault), fault_message(fault));
      return;
    }
    if (stopping_) return;
    notify_systemd("STOPPING=1");
    stopping_ = true;
    stop_by_ = now_ + kGraceMs + 2 * kAbandonMs;
    for (Slot& slot : slots_) slot.session.end(WarningKind::cancelled, now_);
    watch(listener_, listener_watched_, 0, kListener);
    close(listener_);
    listener_ = -1;
  }

  // Turning the clock back does not bring an expired policy back.
  std::uint64_t wall_secs() const { return std::max(unix_milliseconds(), boot_time_ + now_) / 1000; }
  bool enabled() const {
    return config_.table != nullptr && config_.table->enabled() && in_window(*config_.table, wall_secs()) &&
           !stopping_;
  }

  // ---- messages ----------------------------------------------------------------------------------------

  void take_messages(std::uint32_t index, std::uint32_t events) {
    Peer& peer = peers_[index];
    if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0 && !peer.listens()) peer.dead = true;
    for (int i = 0; i < 64 && peer.listens() && (audit_.has_room() || audit_.degraded()); ++i) {
      std::span<std::uint8_t> bytes;
      const Received received = peers_.receive(peer, bytes, now_);
      if (received == Received::nothing && peer.received == 0 && peer.message == nullptr) return;
      if (received == Received::message && !take_message(index, bytes)) std::free(bytes.data());
      message_.has_address = message_.has_address && received != Received::bad_length;
      if (received == Received::bad_length) malformed(index);
    }
  }

  // True: a session has taken the bytes over.
  bool take_message(std::uint32_t index, std::span<std::uint8_t> bytes) {
    const bool valid = decode(bytes, message_);
    Slot* const slot = valid && message_.kind == kKindExec ? find(index, message_.address) : nullptr;
    if (!valid || (slot != nullptr && message_.tag == Tag::request))
      malformed(index);
    else if (message_.kind != kKindExec)
      answer(index, message_.kind);
    else if (message_.tag == Tag::request)
      return request(index, bytes.data());
    else if (slot != nullptr && message_.tag == Tag::cancel)
      slot->session.end(WarningKind::cancelled, now_);
    else if (slot != nullptr)
      slot->session.renew(now_);
    return false;
  }

  void answer(std::uint32_t index, std::uint8_t kind) {
    Json json(document_);
    if (kind == kKindDiagnostics)
      write_diagnostics(json, config_, enabled(), totals_, slots_);
    else
      write_sessions(json, slots_, now_);
    peers_.send(peers_[index], Frame(kind).finish(json.view().size()), as_bytes(json.view()));
  }

  Slot* find(std::uint32_t peer, const Address& address) {
    for (Slot& slot : slots_)
      if (slot.session.stage != Stage::free && slot.peer == peer &&
          std::memcmp(&slot.address, &address, sizeof address) == 0)
        return &slot;
    return nullptr;
  }

  // The sessions of a peer that is gone, or that we no longer listen to.
  void leave(std::uint32_t index) {
    for (Slot& slot : slots_) {
      if (slot.session.stage == Stage::free || slot.peer != index) continue;
      slot.session.end(WarningKind::peer_disconnected, now_);
      slot.peer = kNoPeer;
    }
    peers_[index].sessions = 0;
  }

  void malformed(std::uint32_t index) {
    count_denial(DenialReason::malformed_frame);
    if (audit_.degraded()) {
      audit_.count_unrecorded();
    } else {
      Json& json = audit_.begin("malformed").key("request_id");
      message_.has_address ? json.uuid(message_.address.request_id) : json.word("null");
      audit_.finish();
    }
    if (message_.has_address) send_exit(index, message_.address, denied(DenialReason::malformed_frame));
    peers_[index].leaving = true;
    leave(index);
  }

  // ---- requests ----------------------------------------------------------------------------------------

  bool request(std::uint32_t index, std::uint8_t* bytes) {
    ++totals_.received;
    Slot* slot = nullptr;
    Verdict verdict;
    if (enabled()) verdict = decide(*config_.table, message_.request(), wall_secs());
    if (verdict.decision == Decision::allow && !has_capacity(message_.address, slot))
      verdict = {Decision::deny, DenialReason::concurrency_limit_reached, verdict.rule};
    if (verdict.decision == Decision::allow && audit_.degraded())
      verdict = {Decision::deny, DenialReason::exec_disabled, verdict.rule};
    if (verdict.decision != Decision::allow) {
      count_denial(verdict.reason);
      if (audit_.degraded())
        audit_.count_unrecorded();  // nothing can be recorded, and nothing is allowed
      else
        record_denial(message_.address, {message_.argv, message_.argc}, message_.argv_block, verdict.rule,
                      verdict.reason);
      send_exit(index, message_.address, denied(verdict.reason));
      return false;
    }
    const BlobView& table = *config_.table;
    const std::uint32_t entry = table.rule(verdict.rule).entry;
    *slot = {};
    slot->session.accept(table.caps(verdict.rule), message_.timeout_ms, now_);
    slot->address = message_.address;
    slot->peer = index;
    slot->rule = verdict.rule;
    slot->message = bytes;
    slot->argv_block = message_.argv_block;
    slot->stdin_data = message_.stdin_data;
    slot->started_at = unix_milliseconds();
    summarise(*slot);
    ++peers_[index].sessions;
    Json& json =
        record("request", slot->address, {message_.argv, message_.argc}, slot->argv_block, slot->rule);
    json.key("matched_acl");
    table.entry(entry).description.present() ? json.text(table.entry(entry).description.bytes)
                                             : json.word("null");
    json.key("rule")
        .begin('{')
        .key("entry")
        .number(entry)
        .key("command")
        .number(slot->rule - table.entry(entry).first_rule)
        .end('}');
    json.key("policy").hex(config_.digest.bytes).key("stdin_bytes").number(slot->stdin_data.size());
    json.key("timeout_ms").number(message_.timeout_ms);
    audit_.finish();
    return true;
  }

  bool has_capacity(const Address& address, Slot*& free) {
    std::uint32_t total = 0, of_agent = 0;
    for (Slot& slot : slots_) {
      if (slot.session.stage == Stage::free) free = &slot;
      if (slot.session.stage == Stage::free) continue;
      ++total;
      of_agent += std::memcmp(slot.address.pair, address.pair, kIdBytes) == 0 ? 1 : 0;
    }
    return free != nullptr && total < config_.table->max_concurrent_total() &&
           of_agent < config_.table->max_concurrent_per_agent();
  }

  bool hides_argv(std::uint32_t rule) const {
    return rule != blob::kNone && (config_.table->options(rule).flags & blob::kOptionAuditHash) != 0;
  }

  // For people who look at a list: the start of the command line.
  void summarise(Slot& slot) {
    const std::string_view hidden = "(hashed)";
    const Bytes shown = hides_argv(slot.rule) ? as_bytes(hidden) : slot.argv_block;
    const std::size_t size = std::min(shown.size(), sizeof slot.summary - 1);
    std::replace_copy(shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(size), slot.summary, '\0',
                      ' ');
    if (size > 0 && slot.summary[size - 1] == ' ') slot.summary[size - 1] = '\0';
  }

  Json& record(const char* event, const Address& address, std::span<const Bytes> argv, Bytes block,
               std::uint32_t rule) {
    Json& json = audit_.begin(event).key("request_id").uuid(address.request_id);
    json.key("agent_id").hex(address.agent()).key("machine_id").hex(address.machine());
    write_argv(json, argv, block, hides_argv(rule));
    return json;
  }

  static ExitFacts denied(DenialReason reason) {
    ExitFacts facts;
    facts.denial = static_cast<int>(reason);
    return facts;
  }

  void count_denial(DenialReason reason) {
    ++totals_.denied;
    ++totals_.reasons[static_cast<std::size_t>(reason)];
  }

  void send_exit(std::uint32_t peer, const Address& address, const ExitFacts& facts) {
    if (peer != kNoPeer) peers_.send(peers_[peer], exit_frame(address, facts).finish());
  }

  void record_denial(const Address& address, std::span<const Bytes> argv, Bytes block, std::uint32_t rule,
                     DenialReason reason, const Slot* failed = nullptr) {
    Json& json = record("denial", address, argv, block, rule)
                     .key("reason")
                     .text(kDenialNames[static_cast<std::size_t>(reason)]);
    if (failed != nullptr) {
      const char* const error = strerrorname_np(failed->error);
      json.key("step").text(kSpawnStepNames[static_cast<std::size_t>(failed->failed)]);
      json.key("error").text(error != nullptr ? error : "");
    }
    audit_.finish();
  }

  // An accepted request that does not run after all. Its argv is split again: the message was another since.
  void turn_down(Slot& slot, DenialReason reason) {
    const std::uint32_t argc = split_argv(slot.argv_block, message_.argv);
    count_denial(reason);
    record_denial(slot.address, {message_.argv, argc}, slot.argv_block, slot.rule, reason,
                  reason == DenialReason::spawn_failed ? &slot : nullptr);
    slot.facts = denied(reason);
    slot.session.stage = Stage::finished;
  }

  // ---- processes ---------------------------------------------------------------------------------------

  // Its record is not on disk, so it does not run. It is told at once; both records are kept.
  void refuse(Slot& slot) {
    turn_down(slot, DenialReason::exec_disabled);
    release(slot);
  }

  void launch(Slot& slot) {
    static const char* argv[blob::kMaxArgc + 1];
    const std::uint32_t argc = split_argv(slot.argv_block, message_.argv);
    for (std::uint32_t i = 0; i < argc; ++i) argv[i] = reinterpret_cast<const char*>(message_.argv[i].data());
    argv[argc] = nullptr;
    ++totals_.allowed;
    ChildPlan plan;
    errno = E2BIG;
    slot.failed = SpawnStep::environment;
    if (plan_rule(*config_.table, slot.rule, argv, config_.home, plan)) {
      plan.delegated = cgroup_;
      plan.slot = static_cast<std::uint32_t>(&slot - slots_);
      slot.failed = spawn(plan, slot.io);
    }
    slot.error = errno;
    slot.session.stage = Stage::running;
    if (slot.failed != SpawnStep::none) return close_out(slot);
    if (slot.stdin_data.empty()) unwatch(slot, kStdin, true);
  }

  int& fd_of(Slot& slot, std::uint32_t role) {
    return role == kControl  ? slot.io.control
           : role == kStdin  ? slot.io.stdin_fd
           : role == kStdout ? slot.io.stdout_fd
                             : slot.io.stderr_fd;
  }

  void unwatch(Slot& slot, std::uint32_t role, bool and_close) {
    int& fd = fd_of(slot, role);
    watch(fd, slot.watched[role - kControl], 0, role);
    if (and_close && fd >= 0) close(fd);
    if (and_close) fd = -1;
  }

  bool is_slow(const Slot& slot) {
    return slot.peer != kNoPeer && peers_[slot.peer].unsent_size + kChunkBytes + 256 > kDataBudget;
  }

  // Nothing is read before Started has gone out, nor what a slow peer would make us keep.
  bool reads(const Slot& slot, std::size_t stream) {
    const Stream& s = slot.session.streams[stream];
    return (slot.pid != 0 || slot.session.stage == Stage::gone) && s.open &&
           (s.sent >= s.cap || !is_slow(slot));
  }

  void watch_slot(Slot& slot, std::size_t index) {
    watch(slot.io.control, slot.watched[0],
          slot.session.stage == Stage::running && !slot.orphaned ? EPOLLIN : 0u, kControl, index);
    watch(slot.io.stdin_fd, slot.watched[1], EPOLLOUT, kStdin, index);
    watch(slot.io.stdout_fd, slot.watched[2], reads(slot, 0) ? EPOLLIN : 0u, kStdout, index);
    watch(slot.io.stderr_fd, slot.watched[3], reads(slot, 1) ? EPOLLIN : 0u, kStderr, index);
  }

  void take_events(Slot& slot) {
    SupervisorEvent events[kMaxEvents];
    const int n = read_events(slot.io, events);
    if (n == 0) orphan(slot);
    for (int i = 0; i < n; ++i) {
      if (events[i].kind == EventKind::started) {
        ++totals_.started;
        slot.pid = static_cast<std::uint32_t>(events[i].value);
        audit_.begin("started").key("request_id").uuid(slot.address.request_id).key("pid").number(slot.pid);
        audit_.finish(false);
        if (slot.peer != kNoPeer)
          peers_.send(peers_[slot.peer], Frame(slot.address, Tag::started).number(slot.pid, 4).finish());
      } else if (events[i].kind == EventKind::failed) {
        slot.failed = static_cast<SpawnStep>(events[i].value);
        slot.error = events[i].error;
      } else if (events[i].kind == EventKind::exited) {
        slot.session.status = events[i].value;
      } else {
        slot.session.gone(now_);
      }
    }
  }

  // Its supervisor was killed: what it ran is ours now. The pipes still hold what was written last.
  void orphan(Slot& slot) {
    slot.orphaned = true;
    Spawned pipes = slot.io;
    for (std::uint32_t role = kControl; role <= kStderr; ++role) unwatch(slot, role, false);
    slot.io.stdin_fd = slot.io.stdout_fd = slot.io.stderr_fd = -1;
    close_session(slot.io);
    slot.io = {-1, -1, pipes.stdin_fd, pipes.stdout_fd, pipes.stderr_fd};
  }

  void write_stdin(Slot& slot) {
    if (slot.io.stdin_fd < 0) return;
    const ssize_t n = write(slot.io.stdin_fd, slot.stdin_data.data(), slot.stdin_data.size());
    if (n > 0) slot.stdin_data = slot.stdin_data.subspan(static_cast<std::size_t>(n));
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || slot.stdin_data.empty()) unwatch(slot, kStdin, true);
  }

  // False when there was nothing to read. Without `forward` it is only counted.
  bool read_stream(Slot& slot, std::size_t stream, bool forward) {
    static std::uint8_t chunk[kChunkBytes];
    const std::uint32_t role = kStdout + static_cast<std::uint32_t>(stream);
    Stream& s = slot.session.streams[stream];
    if (!s.open || (forward && !reads(slot, stream))) return false;
    const ssize_t n = read(fd_of(slot, role), chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) {
      s.open = false;
      unwatch(slot, role, true);
      return false;
    }
    if (!forward) s.total += static_cast<std::uint64_t>(n);
    const std::size_t size =
        forward ? static_cast<std::size_t>(slot.session.output(stream, static_cast<std::uint64_t>(n))) : 0;
    if (size == 0) return true;
    Frame frame(slot.address, stream == 0 ? Tag::stdout_chunk : Tag::stderr_chunk);
    frame.number(s.seq++, 4).number(size, 8);
    if (slot.peer != kNoPeer) peers_.send(peers_[slot.peer], frame.finish(size), {chunk, size});
    return true;
  }

  void step(Slot& slot) {
    if (slot.orphaned && slot.session.stage == Stage::running) {
      pid_t supervisors[kMaxSessions];
      std::size_t count = 0;
      for (const Slot& other : slots_)
        if (other.io.supervisor > 0) supervisors[count++] = other.io.supervisor;
      if (reap_strays({supervisors, count}) == 0) slot.session.gone(now_);
    }
    const bool throttled = is_slow(slot) && (slot.session.streams[0].open || slot.session.streams[1].open);
    const Actions actions = slot.session.step(now_, throttled);
    for (std::uint32_t kind = 8; kind-- > 0;)  // a cap comes near before it is hit
      if ((actions.warnings >> kind & 1) != 0) warn(slot, static_cast<WarningKind>(kind));
    totals_.duration_breaches += actions.terminate && !slot.session.ended ? 1 : 0;
    if (actions.terminate) signal_session(slot.io, SessionSignal::terminate);
    if (actions.kill) signal_session(slot.io, SessionSignal::kill);
    if (actions.abandon) signal_session(slot.io, SessionSignal::abandon);
    if (actions.finish) close_out(slot);
  }

  void warn(Slot& slot, WarningKind kind) {
    const std::size_t number = static_cast<std::size_t>(kind);
    const bool of_stdout = kind == WarningKind::stdout_cap_hit || kind == WarningKind::stdout_approaching_cap;
    const bool of_stderr = kind == WarningKind::stderr_cap_hit || kind == WarningKind::stderr_approaching_cap;
    RecentWarning& recent = totals_.recent[totals_.recent_count++ % kRecentWarnings];
    recent = {unix_milliseconds(), 0, kind, slot.address, {}};
    recent.bytes =
        (of_stderr ? 0 : slot.session.streams[0].total) + (of_stdout ? 0 : slot.session.streams[1].total);
    std::memcpy(recent.summary, slot.summary, sizeof recent.summary);
    ++totals_.warnings[number];
    Json& json = audit_.begin("warning").key("request_id").uuid(slot.address.request_id);
    json.key("kind").text(kWarningNames[number]).key("bytes").number(recent.bytes);
    audit_.finish(false);
    if (slot.peer != kNoPeer)
      peers_.send(peers_[slot.peer], warning_frame(slot.address, kind, kWarningMessages[number]).finish());
  }

  // Every process is dead. What a slow peer or an outsider kept in a pipe is counted and dropped.
  void close_out(Slot& slot) {
    for (std::size_t stream = 0; stream < 2; ++stream)
      for (int i = 0; i < 64 && read_stream(slot, stream, false);) ++i;
    for (std::uint32_t role = kControl; role <= kStderr; ++role) unwatch(slot, role, false);
    close_session(slot.io);
    slot.io = {};
    if (slot.failed != SpawnStep::none) return turn_down(slot, DenialReason::spawn_failed);
    slot.session.stage = Stage::finished;
    const ExitFacts& facts = slot.facts = slot.session.facts(now_);
    ++totals_.completed;
    totals_.cancelled += slot.session.ended ? 1 : 0;
    Json& json = audit_.begin("exit").key("request_id").uuid(slot.address.request_id).key("code");
    facts.code >= 0 ? json.number(static_cast<std::uint64_t>(facts.code)) : json.word("null");
    json.key("signal");
    facts.signal > 0 ? json.number(static_cast<std::uint64_t>(facts.signal)) : json.word("null");
    json.key("duration_ms").number(facts.duration_ms).key("stdout_bytes").number(facts.stdout_bytes);
    json.key("stderr_bytes").number(facts.stderr_bytes).key("truncated").truth(facts.truncated);
    audit_.finish();
  }

  void release(Slot& slot) {
    send_exit(slot.peer, slot.address, slot.facts);
    if (slot.peer != kNoPeer) --peers_[slot.peer].sessions;
    std::free(slot.message);
    slot = {};
  }

  const ServerConfig config_;
  Audit& audit_;
  int listener_, epoll_ = -1, signals_ = -1;
  std::uint32_t listener_watched_ = 0, signals_watched_ = 0;
  std::uint64_t now_, boot_time_, accept_after_ = 0, retry_at_ = 0, ride_until_ = 0, stop_by_ = 0;
  int cgroup_;  // where sessions may have cgroups, or -1
  bool stopping_ = false, guests_ = false, expired_ = false;
  Totals totals_{};
  Peers peers_;
  Slot slots_[kMaxSessions];
  Message message_{};
  char document_[kMaxDocument];
};

}  // namespace

int serve(const ServerConfig& config) {
  static Server server(config);
  return server.run();
}

void notify_systemd(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  const std::size_t size = path != nullptr ? std::strlen(path) : 0;
  if (size < 2 || size >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@')) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path, size);
  if (path[0] == '@') to.sun_path[0] = '\0';  // an abstract name
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), length);
  close(fd);
}

}  // namespace x0x
