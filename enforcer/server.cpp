#include "enforcer/server.hpp"

namespace x0x {

using namespace wire;

constexpr std::uint32_t kReadsPerTurn = 8;
constexpr std::size_t kChunkHead = kLengthBytes + 1 + 2 * kIdBytes + kPrefixBytes + 4 + kRequestIdBytes + 4 + 8;

// epoll, edge-triggered, only says where to look again: each descriptor has a flag that it sets, and that is cleared
// when there is nothing more to be had. What is looked at is decided by the state alone.
class Server {
 public:
  explicit Server(const ServerConfig& config) : config_(config), audit_(*config.audit) {
    remove_session_cgroups(cgroup_);  // of enforcers that were killed
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    watch(signals_, EPOLLIN, signals_ready_);
    watch(config_.listener, EPOLLIN, guests_);
  }

  int run() {
    notify_systemd("READY=1");
    for (settle(); !done(); settle()) {
      epoll_event events[64];
      const int n = epoll_wait(epoll_, events, 64, timeout());
      now_ = milliseconds(CLOCK_BOOTTIME);
      for (int i = 0; i < n; ++i) *static_cast<std::uint32_t*>(events[i].data.ptr) |= events[i].events;
      take();
    }
    audit_.append(audit_.begin("stopped"));
    dismiss_idle(kNever);
    remove_session_cgroups(cgroup_);
    return audit_.flush() ? 0 : 1;
  }

 private:
  // ---- the turn

  std::span<Slot> slots() { return {slots_, slots_used_}; }
  std::span<Peer> peers() { return {peers_, peers_used_}; }

  void watch(int fd, std::uint32_t events, std::uint32_t& ready) {
    epoll_event event{events | EPOLLET, {.ptr = &ready}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void take() {
    if (signals_ready_) take_signals();
    for (Peer& peer : peers()) take_messages(peer);
    ++turn_;  // so that no session is always the first to fill what its peer has not read
    for (std::size_t i = 0; i < slots_used_; ++i) {
      Slot& slot = slots_[(i + turn_) % slots_used_];
      while (hears(slot)) take_progress(slot);
      for (std::uint32_t k = 0; k < 2 * kReadsPerTurn; ++k)
        if (reads(slot, k % 2)) read_stream(slot, k % 2, slot.progress.command != 0);
    }
    for (int i = 0; i < 64 && guests_ && !stopping_ && now_ >= accept_after_; ++i) accept_guest();
  }

  // Records first, then what waited for them, then the sockets.
  void settle() {
    for (Slot& slot : slots()) step(slot);
    if (!expired_ && !in_window(config_.table, wall_secs())) {
      expired_ = true;
      audit_.append(audit_.begin("policy_expired").write(kPolicyExpired, Hex{config_.digest}));
    }
    if (!audit_.pending()) flush_by_ = now_ + 1000;  // what nothing waits for, or what failed, waits this long
    if (now_ >= flush_by_ || (audit_.waiting() && !audit_.degraded())) {
      audit_.flush();
      flush_by_ = now_ + 1000;
    }
    const bool durable = !audit_.waiting();
    for (Slot& slot : slots()) {
      if (slot.session.stage == Stage::finished && durable) release(slot);
      if (slot.session.stage == Stage::accepted) durable ? launch(slot) : deny(slot, DenialReason::exec_disabled);
    }
    for (Peer& peer : peers()) {
      if (peer.fd >= 0) peer.send_unsent();
      if (!peer.dead) continue;
      leave(peer);
      peer.close();
    }
    dismiss_idle(now_);
    while (slots_used_ > 0 && !slots_[slots_used_ - 1].live() && !slots_[slots_used_ - 1].idle()) --slots_used_;
    while (peers_used_ > 0 && peers_[peers_used_ - 1].fd < 0) --peers_used_;
  }

  void dismiss_idle(std::uint64_t by) {
    for (Slot& slot : slots())
      if (slot.idle() && slot.idle_until <= by) close_session(slot.io);
  }

  // Not at all while there is something to take that would be taken.
  int timeout() {
    const auto listens = [](const Peer& peer) { return peer.listens(); };
    if (signals_ready_ || (audit_.waiting() && !audit_.degraded()) || std::ranges::any_of(peers(), listens)) return 0;
    std::uint64_t next = stopping_ ? stop_by_ : now_ + 60000;
    if (audit_.pending()) next = std::min(next, flush_by_);
    if (guests_ && !stopping_) next = std::min(next, accept_after_);
    if (const std::uint64_t expires = config_.table.header().expires; !expired_ && expires != 0)
      next = std::min(next, expires * 1000 - started_);
    for (const Slot& slot : slots()) {
      if (hears(slot) || reads(slot, 0) || reads(slot, 1)) return 0;
      if (slot.live()) next = std::min(next, slot.orphaned ? now_ + 20 : slot.session.next_deadline(now_));
      if (slot.idle()) next = std::min(next, slot.idle_until);
    }
    return next > now_ ? static_cast<int>(next - now_) : 0;
  }

  bool done() {
    const bool idle = std::ranges::none_of(slots(), &Slot::live) && std::ranges::none_of(peers(), &Peer::waiting);
    return stopping_ && (idle || now_ >= stop_by_);
  }

  void take_signals() {
    signalfd_siginfo info{};
    signals_ready_ = read(signals_, &info, sizeof info) == sizeof info;
    const Fault fault = info.ssi_signo == SIGHUP ? audit_.reopen() : Fault::none;
    if (fault != Fault::none)
      dprintf(2, "x0x-enforcer: audit log: %s; going on in the old file\n", fault_message(fault));
    if ((info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT) || stopping_) return;
    notify_systemd("STOPPING=1");
    stopping_ = true;
    stop_by_ = now_ + kGraceMs + 2 * kAbandonMs;
    close(config_.listener);
    for (Slot& slot : slots()) slot.session.end(WarningKind::cancelled, now_);
  }

  // Turning the clock back does not bring an expired policy back, not even after it was only turned forward.
  std::uint64_t wall_secs() const { return std::max(milliseconds(CLOCK_REALTIME), started_ + now_) / 1000; }
  bool enabled() const { return config_.table.enabled() && !expired_ && !stopping_; }

  // ---- peers

  void accept_guest() {
    const int fd = accept4(config_.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    guests_ = fd >= 0 || (errno != EAGAIN && errno != EINTR);
    if (fd < 0 && guests_) accept_after_ = now_ + 1000;  // no descriptor is left: others may close theirs
    if (fd < 0) return;
    Peer* const peer = admit(peers_, fd, config_.allowed_uids, now_);
    if (peer == nullptr) return void(close(fd));
    watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, peer->ready);
    peers_used_ = std::max(peers_used_, static_cast<std::size_t>(peer - peers_) + 1);
  }

  void take_messages(Peer& peer) {
    for (int i = 0; i < 64 && peer.listens() && audit_.has_room(); ++i) {
      std::span<std::uint8_t> bytes;
      if (peer.receive(bytes, now_) && !take_message(peer, bytes)) free(bytes.data());
    }
  }

  // True: a session has taken the bytes over.
  bool take_message(Peer& peer, std::span<std::uint8_t> bytes) {
    Message message;
    const bool valid = decode(bytes, message);
    const auto named = [&](const Slot& s) {
      return s.peer == &peer && memcmp(&s.address, &message.address, sizeof s.address) == 0;
    };
    const auto slot = std::ranges::find_if(slots(), named);
    const bool found = message.has_address && slot != slots().end();
    if (!valid || (found && message.tag == Tag::request)) {
      malformed(peer, message.has_address ? &message.address : nullptr);
    } else if (message.kind != kKindExec) {
      Json json(document_);
      message.kind == kKindSessions ? write_sessions(json, slots(), now_)
                                    : write_diagnostics(json, config_, enabled(), totals_, slots());
      peer.send(Frame(message.kind).finish(json.view().size()), as_bytes(json.view()));
    } else if (message.tag == Tag::request) {
      return request(peer, message, bytes.data());
    } else if (found) {
      message.tag == Tag::cancel ? slot->session.end(WarningKind::cancelled, now_) : slot->session.renew(now_);
    }
    return false;
  }

  void malformed(Peer& peer, const Address* address) {
    const ExitFacts facts = denied(DenialReason::malformed_frame);
    audit_.degraded()
        ? audit_.count_unrecorded()
        : audit_.append(audit_.begin("malformed").write(kMalformed, address != nullptr ? address->id() : Hex{}));
    if (address != nullptr) peer.send(exit_frame(*address, facts).finish());
    peer.leaving = true;
    leave(peer);
  }

  // The sessions of a peer that is gone, or that is no longer listened to.
  void leave(Peer& peer) {
    for (Slot& slot : slots()) {
      if (slot.peer != &peer) continue;
      slot.session.end(WarningKind::peer_disconnected, now_);
      slot.peer = nullptr;
    }
    peer.sessions = 0;
  }

  // ---- requests

  static bool of_one_pair(const Slot& a, const Slot& b) {
    return memcmp(a.address.pair, b.address.pair, sizeof a.address.pair) == 0;
  }

  // A place whose supervisor waits for this pair, or one without a supervisor, or any; live: there is none.
  Slot& place_for(const Slot& fresh) {
    slots_used_ = std::min<std::size_t>(slots_used_ + 1, kMaxSessions);
    const auto rank = [&](const Slot& s) { return s.live() ? 3 : !s.idle() ? 1 : of_one_pair(s, fresh) ? 0 : 2; };
    return *std::ranges::min_element(slots(), {}, rank);
  }

  // True: it is accepted and will run once its record is durable.
  bool request(Peer& peer, const Message& message, std::uint8_t* bytes) {
    Slot fresh;
    fresh.address = message.address;
    fresh.peer = &peer;
    fresh.argv_block = message.argv_block;
    ++peer.sessions;
    Verdict verdict;
    if (enabled()) verdict = decide(config_.table, message.request(), wall_secs());
    fresh.rule = verdict.rule;
    const blob::Header& limits = config_.table.header();
    if (!is_allow(verdict.decision)) return deny(fresh, verdict.reason), false;
    Slot& slot = place_for(fresh);
    if (slot.live() || std::ranges::count_if(slots(), &Slot::live) >= limits.max_concurrent_total ||
        active_of(slots(), message.address) >= limits.max_concurrent_per_agent)
      return deny(fresh, DenialReason::concurrency_limit_reached), false;
    if (audit_.degraded()) return deny(fresh, DenialReason::exec_disabled), false;
    if (!of_one_pair(slot, fresh)) close_session(slot.io);  // a command can leave marks on its supervisor
    fresh.io = slot.io;
    slot = fresh;
    slot.session.accept(config_.table.caps(slot.rule), message.timeout_ms, now_);
    ++totals_.allowed;
    slot.message = bytes;
    slot.stdin_data = message.stdin_data;
    slot.started_at = milliseconds(CLOCK_REALTIME);
    const Bytes shown = hides_argv(slot) ? as_bytes("(hashed)") : slot.argv_block.first(slot.argv_block.size() - 1);
    std::ranges::replace_copy(shown.first(std::min(shown.size(), sizeof slot.summary - 1)), slot.summary, '\0', ' ');
    const std::uint32_t entry_number = config_.table.rule(slot.rule).entry;
    const Entry entry = config_.table.entry(entry_number);
    audit_.append(begin_record("request", slot)
                      .write(kRequest, config_.table.text(entry.description).bytes, entry_number,
                             slot.rule - entry.first_rule, Hex{config_.digest}, slot.stdin_data.size(),
                             message.timeout_ms));
    return true;
  }

  bool hides_argv(const Slot& slot) const {
    return slot.rule != blob::kNone && (config_.table.options(slot.rule).flags & blob::kOptionAuditHash) != 0;
  }

  Json begin_record(const char* event, const Slot& slot) {
    const Address& who = slot.address;
    Json json = audit_.begin(event).write(kRequester, who.id(), who.agent(), who.machine());
    write_argv(json, slot.argv_block, hides_argv(slot));
    return json;
  }

  ExitFacts denied(DenialReason reason) {
    ++totals_.denied;
    ++totals_.reasons[static_cast<std::size_t>(reason)];
    return {.denial = static_cast<int>(reason)};
  }

  void tell(const Slot& slot, Bytes head, Bytes tail = {}) {
    if (slot.peer != nullptr) slot.peer->send(head, tail);
  }

  // A request that does not run. One that was accepted has a record already, so this one follows it even while the log
  // is degraded; others are only counted then. spawn_failed waits for its record, the rest leaves with this turn.
  void deny(Slot& slot, DenialReason reason) {
    slot.facts = denied(reason);
    totals_.allowed -= slot.live();
    if (slot.live() || !audit_.degraded()) {
      Json json = begin_record("denial", slot).write(kDenial, kDenialNames[static_cast<std::size_t>(reason)]);
      if (const Progress& p = slot.progress; p.failed != SpawnStep::none)
        json.write(kFailedStep, kSpawnStepNames[static_cast<std::size_t>(p.failed)], strerrorname_np(p.error));
      audit_.append(json);
    } else {
      audit_.count_unrecorded();
    }
    slot.session.stage = Stage::finished;
    if (reason != DenialReason::spawn_failed) release(slot);
  }

  void release(Slot& slot) {
    tell(slot, exit_frame(slot.address, slot.facts).finish());
    if (slot.peer != nullptr) --slot.peer->sessions;
    const bool launched = slot.io.fds[0] >= 0;
    // Not sooner: a supervisor ends while the disk is waited for.
    close_session(slot.io, !launched || (slot.progress.gone && !slot.progress.spent));
    free(slot.message);
    Slot fresh;
    fresh.address = slot.address;
    fresh.io = slot.io;
    fresh.idle_until = launched ? now_ + kIdleMs : slot.idle_until;
    slot = fresh;
  }

  // ---- processes

  void launch(Slot& slot) {
    slot.session.stage = Stage::running;
    slot.progress = spawn({&config_.table, slot.rule, slot.argv_block, slot.stdin_data, cgroup_}, slot.io);
    if (slot.progress.failed != SpawnStep::none) return deny(slot, DenialReason::spawn_failed);
    for (std::size_t i = 0; i < std::size(slot.ready); ++i) watch(slot.io.fds[i], EPOLLIN, slot.ready[i]);
  }

  static bool is_slow(const Slot& slot) {
    return slot.peer != nullptr && slot.peer->waiting() + kChunkBytes + 256 > kDataBudget;
  }

  // Nothing is read before Started was sent, nor what a slow peer would make us keep. A flag may outlive its session.
  static bool reads(const Slot& slot, std::uint32_t stream) {
    const Stream& s = slot.session.streams[stream];
    const bool begun = slot.session.stage == Stage::running && slot.progress.command != 0;
    return slot.ready[stream] != 0 && (begun || slot.session.stage == Stage::gone) &&
           (s.sent >= s.cap || !is_slow(slot));
  }

  static bool hears(const Slot& slot) { return slot.ready[kControl] != 0 && !slot.progress.gone; }

  void take_progress(Slot& slot) {
    const bool started = slot.progress.command != 0;
    const int n = read_progress(slot.io, slot.progress);
    slot.ready[kControl] = n > 0;
    if (slot.session.stage != Stage::running) {  // what has nothing to do has nothing to say, unless it was killed
      slot.progress = {};
      return n >= 0 ? close_session(slot.io) : void();
    }
    if (n == 0) orphan(slot);
    if (slot.progress.gone) slot.session.gone(now_);
    if (started || slot.progress.command == 0) return;
    ++totals_.started;
    audit_.append(audit_.begin("started").write(kStarted, slot.address.id(), slot.progress.command), false);
    tell(slot, Frame(slot.address, Tag::started).number(static_cast<std::uint32_t>(slot.progress.command)).finish());
  }

  // Its supervisor was killed, so what it ran is ours to kill, and the supervisor is reaped with it: waiting for one
  // that a command traces would be waiting for that command. The pipes still hold what was written last.
  void orphan(Slot& slot) {
    slot.orphaned = true;
    close(slot.io.fds[kControl]);
    slot.io.supervisor = slot.io.fds[kControl] = -1;
  }

  void hunt(Slot& orphaned) {
    pid_t supervisors[kMaxSessions];
    std::size_t count = 0;
    for (const Slot& slot : slots())
      if (slot.io.supervisor > 0) supervisors[count++] = slot.io.supervisor;
    if (reap_strays({supervisors, count}) != 0) return;
    remove_session_cgroups(cgroup_);
    orphaned.session.gone(now_);
  }

  // False when there was nothing to read. Without `forward` it is only counted.
  bool read_stream(Slot& slot, std::uint32_t stream, bool forward) {
    static std::uint8_t spare[kChunkBytes];
    std::uint8_t* const room = forward && slot.peer != nullptr ? slot.peer->reserve(kChunkHead + kChunkBytes) : nullptr;
    std::uint8_t* const chunk = room != nullptr ? room + kChunkHead : spare;
    Stream& s = slot.session.streams[stream];
    const ssize_t n = read(slot.io.fds[stream], chunk, kChunkBytes);
    slot.ready[stream] = n > 0;
    s.open = n >= 0 ? n > 0 : errno == EAGAIN || errno == EINTR;
    if (n <= 0) return false;
    const std::uint64_t bytes = static_cast<std::uint64_t>(n);
    if (!forward) s.total += bytes;
    const std::size_t size = forward ? static_cast<std::size_t>(slot.session.output(stream, bytes)) : 0;
    if (size == 0 || room == nullptr) return true;
    Frame frame(slot.address, stream == 0 ? Tag::stdout_chunk : Tag::stderr_chunk);
    memcpy(room, frame.number(s.seq++).number(size, 8).finish(size).data(), kChunkHead);
    slot.peer->unsent_end += kChunkHead + size;
    return true;
  }

  void step(Slot& slot) {
    if (slot.orphaned && slot.session.stage == Stage::running) hunt(slot);
    const Actions actions = slot.session.step(now_, is_slow(slot) || slot.ready[0] != 0 || slot.ready[1] != 0);
    send_warnings(slot, actions.warnings);
    totals_.overdue += actions.overdue;
    for (std::size_t i = static_cast<std::size_t>(actions.from) + 1; i <= static_cast<std::size_t>(actions.to); ++i)
      signal_session(slot.io, static_cast<SessionSignal>(i));
    if (actions.finish) finish(slot);
  }

  void send_warnings(Slot& slot, std::uint32_t kinds) {
    for (std::uint32_t kind = 8; kind-- > 0;)  // a cap comes near before it is hit
      if ((kinds >> kind & 1) != 0) warn(slot, kind);
  }

  void warn(Slot& slot, std::uint32_t kind) {
    const Stream* const s = slot.session.streams;
    const std::uint64_t bytes[] = {s[0].total, s[1].total, s[0].total + s[1].total, s[0].total, s[1].total};
    RecentWarning& recent = totals_.recent[totals_.recent_count++ % kRecentWarnings];
    recent = {milliseconds(CLOCK_REALTIME), bytes[kind < 5 ? kind : 2], kind, slot.address, {}};
    std::ranges::copy(slot.summary, recent.summary);
    ++totals_.warnings[kind];
    audit_.append(audit_.begin("warning").write(kWarning, slot.address.id(), kWarningNames[kind], recent.bytes), false);
    tell(slot, warning_frame(slot.address, kind).finish());
  }

  // Every process is dead, and what they wrote has been waited for. What a slow peer still leaves in a pipe is counted
  // and dropped.
  void finish(Slot& slot) {
    for (const std::uint32_t stream : {0u, 1u})
      for (int i = 0; i < 64 && slot.session.streams[stream].open &&
                      read_stream(slot, stream, slot.progress.command != 0 && !is_slow(slot));)
        ++i;
    send_warnings(slot, slot.session.due);
    if (slot.progress.failed != SpawnStep::none) return deny(slot, DenialReason::spawn_failed);
    slot.session.stage = Stage::finished;
    const ExitFacts& f = slot.facts = slot.session.facts(slot.progress.status, now_);
    ++totals_.completed;
    totals_.cancelled += slot.session.ended;
    audit_.append(audit_.begin("exit").write(kExit, slot.address.id(), f.code, f.signal, f.duration_ms, f.stdout_bytes,
                                             f.stderr_bytes, f.truncated));
  }

  const ServerConfig config_;
  Audit& audit_;
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC), cgroup_ = find_delegated_cgroup();
  int signals_ = -1;
  std::uint64_t now_ = milliseconds(CLOCK_BOOTTIME), accept_after_ = 0, flush_by_ = 0, stop_by_ = 0;
  const std::uint64_t started_ = milliseconds(CLOCK_REALTIME) - now_;
  bool stopping_ = false, expired_ = false;
  std::uint32_t guests_ = 0, signals_ready_ = 0;
  Totals totals_{};
  std::size_t turn_ = 0, slots_used_ = 0, peers_used_ = 0;
  Peer peers_[kMaxPeers];
  Slot slots_[kMaxSessions];
  char document_[kMaxDocument];
};

int serve(const ServerConfig& config) {
  static Server server(config);
  return server.run();
}

}  // namespace x0x
