// Every other value of every byte: of tables, and of the frames a front end sends.
//
// A table with every kind of record takes a while, so it waits for `./dev test --exhaustive`; a small one is always
// tried.
#include <doctest/doctest.h>

#include <algorithm>

#include "client/codec.hpp"
#include "enforcer/frame.hpp"
#include "policyc/read_table.hpp"
#include "tests/exhaustive/exhaustive.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

policyc::Policy small() {
  policyc::Policy source = policy({entry(1, 2, {{"ls", "<INT>"}, {"curl", "h<URL_PATH>"}})});
  source.entries[0].commands[0].cwd = "/";
  return source;
}

policyc::Policy large() {
  policyc::Policy source =
      policy({entry(1, 2, {{"journalctl", "-n", "<INT>"}, {"journalctl", "-n", "5"}}),
              entry(3, 4, {{"curl", "-q", "http://h:1<URL_PATH>"}, {"id"}}), entry(1, 2, {{"id"}})});
  source.name = "golden";
  source.not_before = 1;
  source.expires = 4'000'000'000;
  source.audience = {"db", "web"};
  source.exec.default_cwd = "/srv";
  source.exec.audit_tasklist_id = "list";
  source.entries[0].description = "ops";
  policyc::Command& c = source.entries[0].commands[0];
  c.env = {{"TERM", "dumb"}, {"TZ", ""}};
  c.writable = {"/tmp", "/var/tmp"};
  c.exe = "/bin/journalctl";
  c.reason = "logs";
  c.sha256.emplace().fill(7);
  c.stdin_allowed = false;
  c.limits.cpu_secs = 1;
  c.allow = {{{"journalctl", "-n", "1"}, {}}};
  c.deny = {{{"journalctl"}, {}}};
  return source;
}

void change_every_byte(const policyc::Policy& source) {
  const ByteVector payload = policyc::emit(source);
  REQUIRE(open_trusted(payload).fault == Fault::none);
  ByteVector changed = payload;
  std::size_t accepted = 0, wrong = 0;
  for (std::size_t at = 0; at < payload.size(); ++at) {
    for (int difference = 1; difference < 256; ++difference) {
      changed[at] = static_cast<std::uint8_t>(payload[at] + difference);
      const OpenTable table = open_trusted(changed);
      if (table.fault != Fault::none) continue;
      ++accepted;
      wrong += policyc::emit(policyc::read_table(table.view)) != changed;
    }
    changed[at] = payload[at];
    REQUIRE_MESSAGE(wrong == 0, "at byte " << at);
  }
  CHECK(accepted > 0);                         // caps and times are free
  CHECK(accepted < payload.size() * 255 / 2);  // but most bytes have one value only
  MESSAGE(payload.size() << " bytes, " << accepted << " changes that are a table, and the only one that says so");
}

client::Session address() {
  client::Session session;
  session.pair.agent.fill(0xaa);
  session.pair.machine.fill(0xbb);
  session.request_id.fill(0x11);
  return session;
}

std::vector<client::Message> sample_frames() {
  client::Request full{{"echo", "", "h\xc3\xa1llo"}, "in", 1500, "/tmp"};
  return {client::encode_request(address(), {{"id"}, {}, 0, {}}),
          client::encode_request(address(), full),
          client::encode_request(address(), {{}, {}, 0, {}}),
          client::encode_renewal(address()),
          client::encode_cancel(address()),
          client::encode_question(wire::kKindDiagnostics),
          client::encode_question(wire::kKindSessions)};
}

// Everything a message says, as text; "" when it is malformed.
std::string decoded(client::Message bytes) {
  Message m;
  if (!decode(bytes, m)) return "";
  std::string all(1, static_cast<char>(m.kind));
  all += std::to_string(static_cast<std::uint32_t>(m.tag)) + ' ' + std::to_string(m.argc) + ' ';
  all += std::to_string(m.timeout_ms) + (m.cwd_present ? " cwd " : " ") + std::to_string(m.stdin_data.size()) + ' ';
  all.append(as_text(m.address.pair)).append(as_text(m.address.request_id));
  return all.append(as_text(m.argv_block)).append(as_text(m.stdin_data));
}

}  // namespace

TEST_CASE("all 255 other values of every byte of a small table") { change_every_byte(small()); }

TEST_CASE("all 255 other values of every byte of a table with every kind of record") {
  if (thorough()) change_every_byte(large());
}

TEST_CASE("every one-byte change of every sample frame is malformed, or says something else") {
  std::size_t malformed = 0, different = 0;
  for (const client::Message& framed : sample_frames()) {
    const client::Message frame(framed.begin() + wire::kLengthBytes, framed.end());
    const std::string original = decoded(frame);
    REQUIRE(!original.empty());
    const bool has_cwd = original.find(" cwd ") != std::string::npos;  // whose text is checked but not kept
    const std::size_t kept = frame.size() - (has_cwd ? 4 : 0);
    for (std::size_t at = 0; at < frame.size(); ++at)
      for (int difference = 1; difference < 256; ++difference) {
        client::Message changed = frame;
        changed[at] = static_cast<std::uint8_t>(changed[at] + difference);
        const std::string now = decoded(changed);
        REQUIRE_MESSAGE((now != original || at >= kept), "byte " << at);
        malformed += now.empty();
        different += !now.empty();
      }
  }
  CHECK(malformed > 1000);
  CHECK(different > 1000);
}
