// The event loop itself, with a machine of memory below it: whenever it waits, the input says what happens next.
//
// Frames, ends of children, time, slow readers, failing disks and signals come in any order. Promised, among others: a
// child only after its request is durable and within the limits, an Exit only after its record, exactly one Exit for
// each request and nothing after it, totals that add up, an unbroken audit chain, nothing left behind.
#include "enforcer/server.cpp"  // for its class, which no header shows

#include <new>

#include "fuzz/session_promises.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::fuzz;

namespace {

const test::OpenTable& table() {
  static const test::OpenTable opened = [] {
    policyc::Policy policy = test::policy(
        {test::entry(1, 1, {{"work", "<INT>"}, {"hidden", "<INT>"}}), test::entry(2, 1, {{"work", "<INT>"}})});
    policy.entries[0].commands[1].audit_hash = true;
    policy.exec.max_stdout_bytes = kStdoutCap;
    policy.exec.warn_stdout_bytes = kStdoutCap / 2;
    policy.exec.max_stderr_bytes = policy.exec.warn_stderr_bytes = kStderrCap;
    policy.exec.max_duration_secs = 10;
    policy.exec.warn_duration_secs = 3;
    policy.exec.max_concurrent_per_agent = kMaxPerAgent;
    policy.exec.max_concurrent_total = kMaxTotal;
    policy.expires = 4'102'444'800;  // 2100: reached by sleeping for a century
    return test::open_policy(policy);
  }();
  return opened;
}

class Story : public Witness {
 public:
  explicit Story(Bytes bytes) : in_(bytes) {}
  Server* server = nullptr;

  void wait(int timeout) override {
    for (const Peer& peer : server->peers_)
      promise(peer.unsent_room <= kMaxUnsent, "what a peer makes us hold is bounded");
    for (const Slot& slot : server->slots())
      promise(timeout == 0 || slot.session.stage != Stage::running || !slot.session.ended ||
                  slot.session.signalled != SessionSignal::none,
              "who is ended is told at once");
    if (in_.empty()) return wind_down(timeout);
    for (bool more = true; more && !in_.empty();) {
      const std::uint8_t what = in_.byte();
      happen(what & 15);
      more = (what & 0x80) != 0;
    }
  }

 private:
  template <std::size_t n>
  std::uint64_t one_of(const std::uint64_t (&choices)[n]) {
    return choices[in_.below(n)];
  }
  Connection* a_connection() {
    return connections.empty() ? nullptr : connections[in_.below(connections.size())].get();
  }
  Child* a_child() {
    Child* const child = children.empty() ? nullptr : children[in_.below(children.size())].get();
    return child == nullptr || child->dead || child->lost ? nullptr : child;
  }

  void happen(int what) {
    if (what == 0 && connections.size() < 6) connect(in_.byte() == 0xff ? 8 : 7);
    if (what == 13) now += one_of({1, 20, 199, 200, 1000, 2500, 3999, 4000, 5000, 10'000, 3'200'000'000'000});
    if (what == 14) disk = static_cast<Disk>(in_.below(5));
    if (what == 15) disturb();
    if (what >= 1 && what <= 6)
      if (Connection* const c = a_connection(); c != nullptr && !c->hung_up && !c->reset) converse(what, *c);
    if (what >= 7 && what <= 12)
      if (Child* const c = a_child(); c != nullptr) live(what, *c);
  }

  void converse(int what, Connection& c) {
    const std::uint8_t how = in_.byte();
    if (what == 1) return request(c, how, static_cast<std::uint32_t>(one_of({0, 0, 1, 5000, 10'000, 10'001})));
    if (what == 2) return follow_up(c, in_.byte(), how % 2 == 0);
    if (what == 3) return say(c, client::encode_question(how % 2 == 0 ? kKindDiagnostics : kKindSessions));
    if (what == 4) return spoil(c, in_.take(how % 64));
    if (what == 5) return leave(c, how % 2 == 0);
    c.piece = how % 3 == 0 ? 1 : how % 3 == 1 ? 70 : ~std::size_t{0};
    c.room = one_of({0, 1, 100, 20'000, 1u << 20});
  }

  void live(int what, Child& child) {
    const std::size_t stream = in_.byte() % 2;
    if (what == 7) child.progress.command = 1000 + static_cast<pid_t>(child.serial);
    if (what == 8 && child.progress.command == 0)
      child.progress.failed = SpawnStep::exec, child.progress.error = ENOENT, end(child, -1);
    if (what == 9) end(child, static_cast<int>(one_of({0, 1 << 8, 255 << 8, SIGTERM, SIGKILL})));
    if (what == 10) write_output(child, stream, one_of({1, 99, 2, 16'384, 20'000, 65'536}));
    if (what == 11) child.open[stream] = false;
    if (what == 12 && stream == 0) child.lost = true, strays = static_cast<int>(in_.below(3));
    if (what == 12 && stream == 1) child.deaf = true;
    child.news = child.news || what == 7;
  }

  void disturb() {
    const std::uint8_t how = in_.byte();
    if (how % 8 == 0) raise_signal(SIGTERM), stopped_early = true;
    if (how % 8 == 1) files.emplace_back();  // logrotate
    if (how % 8 <= 2 && how % 8 > 0) raise_signal(SIGHUP);
    if (how % 8 == 3) spawn_fails = SpawnStep::fork;
    if (how % 8 == 4) descriptors_left = !descriptors_left;
    if (how % 8 == 5) rumour = true;
    if (how % 8 == 6) supervisors_stay = !supervisors_stay;
    if (how % 8 == 7) lose_idle();
  }
  void lose_idle() {  // a command of another session kills a supervisor that has none
    for (const auto& child : children)
      if (child->closed && !child->reaped) child->lost = true;
  }

  // The input is used up: everything that failed works again, everybody reads, every child ends, and then we stop.
  void wind_down(int timeout) {
    disk = Disk::works;
    descriptors_left = true;
    strays = 0;
    for (const auto& c : connections) c->room = 1u << 30, c->piece = ~std::size_t{0};
    for (const auto& child : children)
      if (!child->dead && !child->lost) end(*child, 0);
    now += timeout > 0 ? static_cast<std::uint64_t>(timeout) : 0;
    const bool quiet = server->slots_used_ == 0 && guests.empty() &&
                       std::ranges::all_of(connections, [](auto& c) { return c->inbox.empty() || c->fd < 0; });
    if (!quiet || timeout == 0) return;
    ++winding_;
    if (winding_ == 1) everything_answered = !stopped_early;
    if (winding_ == 2)
      for (const auto& c : connections) c->hung_up = true;
    if (winding_ == 3) raise_signal(SIGTERM);
  }

  Input in_;
  int winding_ = 0;
};

void check_totals(const Server& server, const Witness& world) {
  const Totals& t = server.totals_;
  std::uint64_t reasons = 0;
  for (const std::uint64_t n : t.reasons) reasons += n;
  const std::uint64_t live = static_cast<std::uint64_t>(std::ranges::count_if(server.slots_, &Slot::live));
  promise(reasons == t.denied, "every denial has a reason");
  promise(live > 0 || t.allowed == t.completed, "what was allowed has ended");
  promise(t.started <= t.allowed && t.cancelled <= t.completed, "no more ends than beginnings");
  promise(live == 0 || world.stopped_early, "an ordinary stop leaves no session");
}

}  // namespace

X0X_FUZZ(session) {
  static char queue[kAuditQueueBytes];
  alignas(Server) static std::byte room[sizeof(Server)];
  static constexpr std::uint32_t uids[] = {7};
  promise(table().fault == Fault::none, "the policy of this target is a policy");
  Story story({data, size});
  Audit audit;
  promise(audit.open("log", queue) == Fault::none, "an empty log can be opened");
  Server* const server = new (room) Server({table().view, {}, "policy", &audit, story.open(Kind::listener), uids, 0});
  story.server = server;
  const int status = server->run();
  check_totals(*server, story);
  story.check_all(status == 0);
  for (Peer& peer : server->peers_)
    if (peer.fd >= 0) peer.close();
  for (Slot& slot : server->slots_) free(slot.message);
  server->~Server();
  return 0;
}
