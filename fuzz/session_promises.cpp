#include "fuzz/session_promises.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "enforcer/cursor.hpp"
#include "policyc/audit_chain.hpp"

namespace x0x::fuzz {

using client::RequestId;

// ---- what is said

void Witness::request(Connection& c, std::uint8_t how, std::uint32_t timeout_ms) {
  Asked asked{{}, &c};
  const auto serial = static_cast<std::uint32_t>(asked_.size() + 1);
  asked.session.pair.agent.fill(static_cast<std::uint8_t>(1 + how % 3));  // 3 is nobody
  asked.session.pair.machine.fill(1);
  for (std::size_t i = 0; i < 4; ++i) asked.session.request_id[i] = static_cast<std::uint8_t>(serial >> (8 * i));
  const bool again = how >= 0xf0 && !asked_.empty();
  if (again) asked.session = asked_.back().session;
  if (again) spoilt_.push_back(&c);
  client::Request request;
  request.argv = {how / 4 % 4 == 1 ? "hidden" : how / 4 % 4 == 2 ? "other" : "work", std::to_string(serial)};
  if (how / 16 % 4 == 1) request.stdin_bytes = std::string(how / 64 == 1 ? 100'000 : 5, 'i');
  if (how / 16 % 4 == 2 && how / 64 == 0) request.cwd = "/";
  request.timeout_ms = timeout_ms;
  asked_.push_back(asked);
  say(c, client::encode_request(asked.session, request));
}

void Witness::follow_up(Connection& c, std::size_t which, bool cancel) {
  if (asked_.empty()) return;
  const client::Session& session = asked_[which % asked_.size()].session;  // perhaps another connection's: no effect
  say(c, cancel ? client::encode_cancel(session) : client::encode_renewal(session));
}

void Witness::spoil(Connection& c, Bytes bytes) {
  spoilt_.push_back(&c);
  say(c, bytes);
}

void Witness::leave(Connection& c, bool reset) {
  spoilt_.push_back(&c);
  (reset ? c.reset : c.hung_up) = true;
}

void Witness::write_output(Child& child, std::size_t stream, std::uint64_t bytes) {
  const std::size_t n = std::min<std::size_t>(bytes, (1u << 16) - child.waiting[stream]);
  if (!child.open[stream]) return;
  child.waiting[stream] += n;
  child.written[stream] += n;
}

void Witness::raise_signal(int signal) { signals.push_back(signal); }

// ---- what is promised

void Witness::spawned(const Child& child) {
  promise(child.serial >= 1 && child.serial <= asked_.size(), "a child has the argv of a request");
  const Asked& asked = asked_[child.serial - 1];
  std::uint32_t total = 0, agents = 0;
  for (const auto& other : children) {
    if (other->closed) continue;
    ++total;
    agents += asked_[other->serial - 1].session.pair.agent == asked.session.pair.agent;
  }
  promise(total <= kMaxTotal && agents <= kMaxPerAgent, "the limits of concurrency hold");
  const std::string wanted = R"("event":"request","request_id":")" + client::to_uuid(asked.session.request_id) + '"';
  promise(
      std::ranges::any_of(durable, [&](auto& record) { return record.second.first.find(wanted) != std::string::npos; }),
      "a request is durable before its child exists");
}

// One session as its client sees it.
struct Witness::Seen {
  std::size_t requests = 0, exits = 0, ends = 0;
  bool started = false;
  std::uint32_t seq[2] = {};
  std::uint64_t bytes[2] = {};
};

std::size_t Witness::durable_ends(const RequestId& id, std::uint64_t by) const {
  const std::string name = R"("request_id":")" + client::to_uuid(id) + '"';
  return static_cast<std::size_t>(std::ranges::count_if(durable, [&](const auto& found) {
    const auto& [record, with] = found.second;
    const bool end = record.find(R"("event":"exit",)") != record.npos || record.find("spawn_failed") != record.npos;
    return with <= by && end && record.find(name) != record.npos;
  }));
}

void Witness::check_frame(Seen& seen, const client::Answer& answer, std::uint64_t by) const {
  promise(seen.exits < seen.requests, "no frame after Exit");
  if (std::holds_alternative<client::Started>(answer.frame)) {
    promise(!seen.started && seen.seq[0] + seen.seq[1] == 0, "one Started, before all output");
    seen.started = true;
  } else if (const auto* output = std::get_if<client::Output>(&answer.frame)) {
    const std::size_t stream = output->stream == client::Stream::out ? 0 : 1;
    promise(output->seq == seen.seq[stream]++, "output in order");
    promise(!output->data.empty() && output->data.size() <= wire::kChunkBytes, "output in pieces");
    seen.bytes[stream] += output->data.size();
    promise(seen.bytes[stream] <= (stream == 0 ? kStdoutCap : kStderrCap), "output within its cap");
  } else if (const auto* exit = std::get_if<client::Exit>(&answer.frame)) {
    const bool ran = !exit->denial_reason.has_value();
    if (ran || *exit->denial_reason == wire::DenialReason::spawn_failed)
      promise(durable_ends(answer.session.request_id, by) >= ++seen.ends, "an Exit waits for its record");
    if (ran) {
      promise(exit->code.has_value() != exit->signal.has_value(), "a code or a signal");
      promise(exit->stdout_bytes_total >= seen.bytes[0] && exit->stderr_bytes_total >= seen.bytes[1], "all is counted");
      promise(
          exit->truncated == (exit->stdout_bytes_total != seen.bytes[0] || exit->stderr_bytes_total != seen.bytes[1]),
          "truncated when something was dropped");
    }
    ++seen.exits;
    seen = {seen.requests, seen.exits, seen.ends, false, {}, {}};
  }
}

void Witness::check_answers(const Connection& c) const {
  const bool spoilt = std::ranges::count(spoilt_, &c) > 0;
  std::map<std::string, Seen> sessions;
  const auto key = [](const client::Session& s) {
    return client::to_hex(s.pair.agent) + client::to_hex(s.pair.machine) + client::to_hex(s.request_id);
  };
  for (const Asked& asked : asked_)
    if (asked.by == &c) ++sessions[key(asked.session)].requests;
  const Bytes all = client::as_bytes(c.outbox);
  for (std::size_t at = 0; all.size() - at >= wire::kLengthBytes;) {
    const std::size_t length = load_u32(all.data() + at), start = at + wire::kLengthBytes;
    if (length > all.size() - start) break;  // it never read the rest
    const Bytes message = all.subspan(start, length);
    const auto sent = std::ranges::find_if(c.sent, [&](auto& s) { return s.end > at; });
    at = start + length;
    client::Answer answer;
    if (message[0] != wire::kKindExec) {
      promise(!nlohmann::json::parse(client::as_text(message.subspan(1)), nullptr, false).is_discarded(), "a document");
      continue;
    }
    promise(client::decode_answer(message, answer) == client::Malformed::none, "the client can read every frame");
    const auto* exit = std::get_if<client::Exit>(&answer.frame);
    Seen& seen = sessions[key(answer.session)];
    // The one answer to a malformed message names whatever id could be read, and is the last.
    if (exit != nullptr && exit->denial_reason == wire::DenialReason::malformed_frame) {
      promise(spoilt, "only a spoilt connection is malformed");
      break;
    }
    check_frame(seen, answer, sent->syncs);
  }
  if (!everything_answered || spoilt || !c.accepted || c.uid != 7) return;
  for (const auto& [name, seen] : sessions) promise(seen.exits == seen.requests, "one Exit for each request");
}

void Witness::check_log(bool complete) const {
  policyc::AuditChain chain({});
  for (const File& f : files) {
    chain.begin_file();
    std::uint64_t number = 0, offset = 0;
    for (std::string_view rest = f.disk; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      chain.line(rest.substr(0, end), end != rest.npos, ++number, offset);
      offset += end + 1;
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    if (complete && &f == &files.back()) promise(f.disk == f.content, "an orderly stop leaves nothing unwritten");
  }
  const policyc::AuditFindings findings = chain.finish();
  for (const policyc::AuditBreak& found : findings.breaks)
    if (found.kind != policyc::AuditBreakKind::no_records)
      promise(false, policyc::kAuditBreakNames[static_cast<std::size_t>(found.kind)]);
}

void Witness::check_all(bool log_complete) const {
  for (const auto& c : connections) {
    check_answers(*c);
    promise(c->uid == 7 || c->outbox.empty(), "nothing is said to strangers");
  }
  for (const auto& child : children) promise(stopped_early || child->closed, "no child is forgotten");
  check_log(log_complete);
}

}  // namespace x0x::fuzz
