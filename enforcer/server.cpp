#include "enforcer/server.hpp"

#include <bit>

namespace x0x {

using namespace wire;

constexpr int kReadsPerTurn = kDataBudget / kChunkBytes;  // enough to make a peer slow, so that an end waits for it
constexpr int kReadsAtEnd = 64;                           // as much as a pipe can hold
constexpr std::size_t kChunkHead = kLengthBytes + 1 + 2 * kIdBytes + kPrefixBytes + 4 + kRequestIdBytes + 4 + 8;

// What can have news: signals, guests, every peer, and of every slot its stdout, its stderr and its supervisor.
constexpr std::size_t kSignals = 0, kGuests = 1, kPeers = 2, kSlots = kPeers + kMaxPeers;
constexpr std::size_t kSources = kSlots + 3 * kMaxSessions;

// What is waited for is told to poll() anew in every turn and follows from the state alone. Deadlines are those that
// somebody has asked the clock about in this turn.
class Server {
 public:
  explicit Server(const ServerConfig& config) : config_(config), audit_(*config.audit) {
    remove_session_cgroups(cgroup_);  // of enforcers that were killed
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  int run() {
    if (signals_ < 0) return dprintf(2, "x0x-enforcer: there is no descriptor left for signals\n"), 1;
    notify_systemd("READY=1");
    for (settle(); !done(); settle()) take();
    audit_.append(audit_.begin("stopped"));
    for (Slot& slot : slots())
      if (slot.idle()) close_session(slot.io);
    remove_session_cgroups(cgroup_);
    return audit_.flush() ? 0 : 1;
  }

 private:
  // ---- the turn

  std::span<Slot> slots() { return {slots_, slots_used_}; }
  std::span<Peer> peers() { return {peers_, peers_used_}; }

  // poll() takes no more entries than there may be descriptors, so none is spent on a source that does not matter now.
  void watch(std::size_t source, int fd, int events) {
    if (fd < 0 || events == 0) return;
    sources_[watched_] = static_cast<std::uint16_t>(source);
    polled_[watched_++] = {fd, static_cast<short>(events), 0};
  }

  void wait() {
    watched_ = 0;
    watch(kSignals, signals_, POLLIN);
    watch(kGuests, config_.listener, !stopping_ && clock_.reached(accept_after_) ? POLLIN : 0);
    for (const Peer& p : peers())
      watch(kPeers + static_cast<std::size_t>(&p - peers_), p.fd,
            (p.listens() && audit_.has_room() ? POLLIN : 0) | (p.waiting() > 0 ? POLLOUT : 0));
    for (std::size_t i = 0; i < 3 * slots_used_; ++i)
      watch(kSlots + i, slots_[i / 3].io.fds[i % 3], hears(slots_[i / 3], i % 3) ? POLLIN : 0);
    const std::uint64_t now = milliseconds(CLOCK_BOOTTIME), left = clock_.next > now ? clock_.next - now : 0;
    // It takes no more entries than we may have descriptors, and a command can lower that: signals are always heard.
    if (poll(polled_, watched_, static_cast<int>(std::min<std::uint64_t>(left, 60'000))) < 0) poll(polled_, 1, 20);
    clock_ = {milliseconds(CLOCK_BOOTTIME)};
  }

  void take() {
    wait();
    ++turn_;  // so that none is always the first to fill what its peer has not read
    for (std::size_t i = 0; i < watched_; ++i) {
      const std::size_t which = (i + turn_) % watched_;
      if ((polled_[which].revents & ~POLLOUT) != 0) take_from(sources_[which]);
    }
  }

  void take_from(std::size_t source) {
    if (source == kSignals) return take_signal();
    if (source == kGuests) return accept_guest();
    if (source < kSlots) return take_messages(peers_[source - kPeers]);
    Slot& slot = slots_[(source - kSlots) / 3];
    const std::size_t fd = (source - kSlots) % 3;
    if (!hears(slot, fd)) return;  // any more: a request has taken the place, or the peer has become slow
    if (fd == kControl) return take_progress(slot);
    for (int i = 0; i < kReadsPerTurn && hears(slot, fd) && read_stream(slot, fd);) ++i;
  }

  // Records first, then what waited for them, then the sockets.
  void settle() {
    for (Slot& slot : slots()) step(slot);
    check_expiry();
    if ((audit_.waiting() && !audit_.degraded()) || clock_.reached(flush_by_)) {
      audit_.flush();
      flush_by_ = kNever;
    }
    if (audit_.pending() || audit_.degraded())
      flush_by_ = std::min(flush_by_, clock_.now + 1000);  // what nothing waits for, or what failed
    clock_.wake_by(flush_by_);
    const bool durable = !audit_.waiting();
    for (Slot& slot : slots()) {
      if (slot.session.stage == Stage::finished && durable) release(slot);
      if (slot.session.stage == Stage::accepted) durable ? launch(slot) : deny(slot, DenialReason::exec_disabled);
    }
    for (Peer& peer : peers()) {
      peer.send_unsent();
      if (peer.leaving || peer.dead) leave(peer);
      if (peer.dead) peer.close();
    }
    while (slots_used_ > 0 && !slots_[slots_used_ - 1].live() && !slots_[slots_used_ - 1].idle()) --slots_used_;
    while (peers_used_ > 0 && peers_[peers_used_ - 1].fd < 0) --peers_used_;
  }

  void check_expiry() {
    const std::uint64_t expires = config_.table.header().expires;
    if (expired_ || expires == 0) return;
    clock_.wake_by(std::min(expires, kNever / 1000) * 1000 - started_);
    expired_ = wall_secs() >= expires;
    if (expired_) audit_.append(audit_.begin("policy_expired").write(kPolicyExpired, Hex{config_.digest}));
  }

  bool done() {
    const bool quiet = std::ranges::none_of(slots(), &Slot::live) && std::ranges::none_of(peers(), &Peer::waiting);
    return stopping_ && (quiet || clock_.reached(stop_by_));
  }

  void take_signal() {
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof info) != sizeof info) return;
    const Fault fault = info.ssi_signo == SIGHUP ? audit_.reopen() : Fault::none;
    if (fault != Fault::none)
      dprintf(2, "x0x-enforcer: audit log: %s; going on in the old file\n", fault_message(fault));
    if (info.ssi_signo == SIGHUP || stopping_) return;
    notify_systemd("STOPPING=1");
    stopping_ = true;
    stop_by_ = clock_.now + kGraceMs + 2 * kAbandonMs;
    close(config_.listener);
    for (Slot& slot : slots()) slot.session.end(WarningKind::cancelled, clock_.now);
  }

  // Turning the clock back does not bring an expired policy back, not even after it was only turned forward.
  std::uint64_t wall_secs() const { return std::max(milliseconds(CLOCK_REALTIME), started_ + clock_.now) / 1000; }
  bool enabled() const { return config_.table.enabled() && !expired_ && !stopping_; }

  // ---- peers

  void accept_guest() {
    const int fd = accept4(config_.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) accept_after_ = clock_.now + 1000;  // no descriptor is left: others may close theirs
    if (fd < 0) return;
    Peer* const peer = admit(peers_, fd, config_.allowed_uids, clock_.now);
    if (peer == nullptr) return void(close(fd));
    peers_used_ = std::max(peers_used_, static_cast<std::size_t>(peer - peers_) + 1);
  }

  void take_messages(Peer& peer) {
    std::span<std::uint8_t> bytes;
    for (int i = 0; i < 64 && peer.listens() && audit_.has_room() && peer.receive(bytes, clock_.now); ++i)
      take_message(peer, bytes);
  }

  // The bytes are ours to free. There are none when not even the length made sense.
  void take_message(Peer& peer, std::span<std::uint8_t> bytes) {
    Message message;
    const bool valid = decode(bytes, message);
    const auto named = [&](const Slot& s) {
      return s.peer == &peer && memcmp(&s.request.address, &message.address, sizeof message.address) == 0;
    };
    const auto slot = std::ranges::find_if(slots(), named);
    const bool found = message.has_address && slot != slots().end();
    if (!valid || (found && message.tag == Tag::request)) {
      Slot fresh{.request = message, .peer = &peer};
      ++peer.sessions;
      deny(fresh, DenialReason::malformed_frame);
      peer.leaving = true;
      leave(peer);  // its place may be another's before this turn ends
    } else if (message.kind != kKindExec) {
      answer(peer, message.kind);
    } else if (message.tag == Tag::request) {
      return request(peer, message, bytes.data());
    } else if (found && message.tag == Tag::cancel) {
      slot->session.end(WarningKind::cancelled, clock_.now);
    } else if (found) {
      slot->session.renew(clock_.now);
    }
    free(bytes.data());
  }

  void answer(Peer& peer, std::uint8_t kind) {
    Json json(document_);
    if (kind == kKindSessions)
      write_sessions(json, slots(), clock_.now);
    else
      write_diagnostics(json, config_, enabled(), totals_, slots());
    peer.send(Frame(kind).finish(json.view().size()), as_bytes(json.view()));
  }

  // The sessions of a peer that is gone, or that is no longer listened to.
  void leave(Peer& peer) {
    for (Slot& slot : slots()) {
      if (slot.peer != &peer) continue;
      slot.session.end(WarningKind::peer_disconnected, clock_.now);
      slot.peer = &nobody_;
      clock_.wake_by(clock_.now);
    }
  }

  // ---- requests

  // Whether it may run, and if not, why.
  Verdict judge(const Message& message) {
    Verdict verdict;
    if (enabled()) verdict = decide(config_.table, message.request(), wall_secs());
    if (!is_allow(verdict.decision)) return verdict;
    const blob::Header& limits = config_.table.header();
    const bool full =
        std::ranges::count_if(slots(), &Slot::live) >= std::min(kMaxSessions, limits.max_concurrent_total) ||
        active_of(slots(), message.address) >= limits.max_concurrent_per_agent;
    if (full) return {Decision::deny, DenialReason::concurrency_limit_reached, verdict.rule};
    if (audit_.degraded()) return {Decision::deny, DenialReason::exec_disabled, verdict.rule};
    return verdict;
  }

  // One whose supervisor waits for this pair, or one without a supervisor, or any that is free.
  Slot& place_for(const Address& who) {
    slots_used_ = std::min<std::size_t>(slots_used_ + 1, kMaxSessions);
    const auto is_theirs = [&](const Slot& s) {
      return memcmp(s.request.address.pair, who.pair, sizeof who.pair) == 0;
    };
    const auto rank = [&](const Slot& s) { return s.live() ? 3 : !s.idle() ? 1 : is_theirs(s) ? 0 : 2; };
    Slot& slot = *std::ranges::min_element(slots(), {}, rank);
    if (!is_theirs(slot)) close_session(slot.io);  // a command can leave marks on its supervisor
    return slot;
  }

  // One that is accepted runs once its record is durable.
  void request(Peer& peer, const Message& message, std::uint8_t* bytes) {
    const Verdict verdict = judge(message);
    Slot fresh{.request = message, .message = bytes, .peer = &peer, .rule = verdict.rule};
    ++peer.sessions;
    if (!is_allow(verdict.decision)) return deny(fresh, verdict.reason);
    ++totals_.allowed;
    fresh.session.accept(config_.table.caps(verdict.rule), message.timeout_ms, clock_.now);
    fresh.started_at = milliseconds(CLOCK_REALTIME);
    const Bytes shown =
        hides_argv(fresh) ? as_bytes("(hashed)") : message.argv_block.first(message.argv_block.size() - 1);
    std::ranges::replace_copy(shown.first(std::min(shown.size(), sizeof fresh.summary - 1)), fresh.summary, '\0', ' ');
    const std::uint32_t entry_number = config_.table.rule(verdict.rule).entry;
    const Entry entry = config_.table.entry(entry_number);
    audit_.append(begin_record("request", fresh)
                      .write(kRequest, config_.table.text(entry.description).bytes, entry_number,
                             verdict.rule - entry.first_rule, Hex{config_.digest}, message.stdin_data.size(),
                             message.timeout_ms));
    Slot& slot = place_for(message.address);
    fresh.io = slot.io;
    slot = fresh;
  }

  bool hides_argv(const Slot& slot) const {
    return slot.rule != blob::kNone && (config_.table.options(slot.rule).flags & blob::kOptionAuditHash) != 0;
  }

  Json begin_record(const char* event, const Slot& slot) {
    const Address& who = slot.request.address;
    Json json = audit_.begin(event).write(kRequester, who.id(), who.agent(), who.machine());
    write_argv(json, slot.request.argv_block, hides_argv(slot));
    return json;
  }

  // A request that does not run. One that was accepted has a record already, so this one follows it even while the log
  // is degraded; others are only counted then. spawn_failed waits for its record, the rest leaves with this turn.
  void deny(Slot& slot, DenialReason reason) {
    const auto number = static_cast<std::size_t>(reason);
    slot.facts = {.denial = static_cast<int>(reason)};
    ++totals_.denied;
    ++totals_.reasons[number];
    totals_.allowed -= slot.live();
    if (!slot.live() && audit_.degraded()) {
      audit_.count_unrecorded();
    } else if (reason == DenialReason::malformed_frame) {
      const Hex id = slot.request.has_address ? slot.request.address.id() : Hex{};
      audit_.append(audit_.begin("malformed").write(kMalformed, id));
    } else {
      Json json = begin_record("denial", slot).write(kDenial, kDenialNames[number]);
      if (const Progress& p = slot.progress; p.failed != SpawnStep::none)
        json.write(kFailedStep, kSpawnStepNames[static_cast<std::size_t>(p.failed)], strerrorname_np(p.error));
      audit_.append(json);
    }
    slot.session.stage = Stage::finished;
    if (reason != DenialReason::spawn_failed) release(slot);
  }

  // Its end is told and its place is free. Not sooner: a supervisor ends while the disk is waited for.
  void release(Slot& slot) {
    if (slot.request.has_address) slot.peer->send(exit_frame(slot.request.address, slot.facts).finish());
    --slot.peer->sessions;
    close_session(slot.io, slot.progress.gone && !slot.progress.spent);
    free(slot.message);
    Slot vacant{.io = slot.io, .idle_until = clock_.now + kIdleMs};
    vacant.request.address = slot.request.address;
    slot = vacant;
    clock_.wake_by(slot.idle_until);
  }

  // ---- processes

  void launch(Slot& slot) {
    const Message& request = slot.request;
    slot.progress = spawn({&config_.table, slot.rule, request.argv_block, request.stdin_data, cgroup_}, slot.io);
    slot.session.stage = Stage::running;
    if (slot.progress.failed == SpawnStep::none) return step(slot);  // it may have been cancelled already
    deny(slot, DenialReason::spawn_failed);
    clock_.wake_by(clock_.now);
  }

  static bool is_slow(const Slot& slot) { return slot.peer->waiting() + kChunkBytes + 256 > kDataBudget; }

  // Nothing is read before Started was sent, nor what a slow peer would make us keep.
  static bool hears(const Slot& slot, std::size_t fd) {
    if (fd == kControl) return slot.idle() || slot.session.stage == Stage::running;
    const Stream& s = slot.session.streams[fd];
    const bool begun = slot.session.stage == Stage::running && slot.progress.command != 0;
    return s.open && (begun || slot.session.stage == Stage::gone) && (s.sent >= s.cap || !is_slow(slot));
  }

  void take_progress(Slot& slot) {
    if (slot.idle()) return close_session(slot.io);  // it has nothing to say, unless it was killed
    const bool started = slot.progress.command != 0;
    if (read_progress(slot.io, slot.progress) == 0) {
      // Killed: what it ran is ours to kill now, and it is reaped with that, because waiting for one that a command
      // traces would be waiting for that command. The pipes still hold what was written last.
      close(slot.io.fds[kControl]);
      slot.io.supervisor = slot.io.fds[kControl] = -1;
    }
    if (slot.progress.gone) slot.session.gone(clock_.now);
    if (started || slot.progress.command == 0) return;
    const Address& address = slot.request.address;
    ++totals_.started;
    audit_.append(audit_.begin("started").write(kStarted, address.id(), slot.progress.command), false);
    slot.peer->send(Frame(address, Tag::started).number(static_cast<std::uint32_t>(slot.progress.command)).finish());
  }

  void hunt(Slot& orphaned) {
    pid_t supervisors[kMaxSessions];
    std::size_t count = 0;
    for (const Slot& slot : slots())
      if (slot.io.supervisor > 0) supervisors[count++] = slot.io.supervisor;
    clock_.wake_by(clock_.now + 20);
    if (reap_strays({supervisors, count}) != 0) return;
    remove_session_cgroups(cgroup_);
    orphaned.session.gone(clock_.now);
  }

  // False when there was nothing to read. What cannot be sent now is only counted.
  bool read_stream(Slot& slot, std::size_t stream) {
    static std::uint8_t spare[kChunkBytes];
    const bool sends = slot.progress.command != 0 && !is_slow(slot);
    std::uint8_t* const room = sends ? slot.peer->reserve(kChunkHead + kChunkBytes) : nullptr;
    std::uint8_t* const chunk = room != nullptr ? room + kChunkHead : spare;
    Stream& s = slot.session.streams[stream];
    const ssize_t n = read(slot.io.fds[stream], chunk, kChunkBytes);
    s.open = n > 0 || (n < 0 && errno == EAGAIN);
    if (n <= 0) return false;
    const std::uint64_t size = slot.session.output(stream, static_cast<std::uint64_t>(n), room != nullptr);
    if (size == 0) return true;
    Frame frame(slot.request.address, stream == 0 ? Tag::stdout_chunk : Tag::stderr_chunk);
    memcpy(room, frame.number(s.seq++).number(size, 8).finish(size).data(), kChunkHead);
    slot.peer->unsent_end += kChunkHead + size;
    return true;
  }

  void step(Slot& slot) {
    if (slot.idle() && clock_.reached(slot.idle_until)) close_session(slot.io);
    if (!slot.live()) return;
    if (slot.session.stage == Stage::running && slot.io.supervisor < 0) hunt(slot);
    for (SessionSignal signal; (signal = slot.session.next_signal(clock_)) != SessionSignal::none;) {
      totals_.overdue += signal == SessionSignal::terminate && !slot.session.ended;
      signal_session(slot.io, signal);
    }
    send_warnings(slot);
    if (slot.session.over(clock_, is_slow(slot))) finish(slot);
  }

  void send_warnings(Slot& slot) {
    const Address& address = slot.request.address;
    const std::uint64_t out = slot.session.streams[0].total, err = slot.session.streams[1].total;
    const std::uint64_t bytes[] = {out, err, out + err, out, err, out + err, out + err, out + err};
    while (const std::uint32_t due = slot.session.due & ~slot.session.warned) {
      const auto kind = static_cast<std::uint32_t>(std::bit_width(due)) - 1;  // a cap comes near before it is hit
      slot.session.warned |= 1u << kind;
      RecentWarning& recent = totals_.recent[totals_.recent_count++ % kRecentWarnings];
      recent = {milliseconds(CLOCK_REALTIME), bytes[kind], kind, address, {}};
      std::ranges::copy(slot.summary, recent.summary);
      ++totals_.warnings[kind];
      audit_.append(audit_.begin("warning").write(kWarning, address.id(), kWarningNames[kind], bytes[kind]), false);
      slot.peer->send(warning_frame(address, kind).finish());
    }
  }

  // Every process is dead, and what they wrote has been waited for. What a slow peer still leaves in a pipe is counted
  // and dropped.
  void finish(Slot& slot) {
    for (const std::size_t stream : {0u, 1u})
      for (int i = 0; i < kReadsAtEnd && slot.session.streams[stream].open && read_stream(slot, stream);) ++i;
    send_warnings(slot);
    if (slot.progress.failed != SpawnStep::none) return deny(slot, DenialReason::spawn_failed);
    slot.session.stage = Stage::finished;
    const ExitFacts& f = slot.facts = slot.session.facts(slot.progress.status, clock_.now);
    ++totals_.completed;
    totals_.cancelled += slot.session.ended;
    audit_.append(audit_.begin("exit").write(kExit, slot.request.address.id(), f.code, f.signal, f.duration_ms,
                                             f.stdout_bytes, f.stderr_bytes, f.truncated));
  }

  const ServerConfig config_;
  Audit& audit_;
  const int cgroup_ = find_delegated_cgroup();
  int signals_ = -1;
  Clock clock_{milliseconds(CLOCK_BOOTTIME)};
  const std::uint64_t started_ = milliseconds(CLOCK_REALTIME) - clock_.now;
  std::uint64_t accept_after_ = 0, flush_by_ = kNever, stop_by_ = 0;
  bool stopping_ = false, expired_ = false;
  Totals totals_{};
  std::size_t turn_ = 0, slots_used_ = 0, peers_used_ = 0, watched_ = 0;
  Peer peers_[kMaxPeers], nobody_{.dead = true};  // nobody_: the peer of sessions whose peer has gone
  Slot slots_[kMaxSessions];
  pollfd polled_[kSources];
  std::uint16_t sources_[kSources];
  char document_[kMaxDocument];
};

int serve(const ServerConfig& config) {
  static Server server(config);
  return server.run();
}

}  // namespace x0x
