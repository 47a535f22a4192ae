// The documents about a running enforcer. They never hold anything of the policy's rules.
#include <cstring>

#include "enforcer/server.hpp"

namespace x0x {

namespace {

void write_policy(Json& json, const ServerConfig& config) {
  const BlobView* table = config.table;
  json.key("policy");
  if (table == nullptr) {
    json.word("null");
    return;
  }
  json.begin('{').key("name");
  table->name().present() ? json.text(table->name().bytes) : json.word("null");
  json.key("version").number(table->policy_version()).key("digest").hex(config.digest.bytes).key("expires");
  table->expires() != 0 ? json.time(table->expires() * 1000) : json.word("null");
  json.end('}');
}

void write_active(Json& json, std::span<const Slot> slots) {
  std::uint32_t active = 0;
  for (const Slot& slot : slots) active += slot.session.stage != Stage::free ? 1 : 0;
  json.key("active_sessions").number(active).key("active_per_agent").begin('{');
  for (const Slot& slot : slots) {
    if (slot.session.stage == Stage::free) continue;
    std::uint32_t count = 0;
    bool first = true;
    for (const Slot& other : slots) {
      if (other.session.stage == Stage::free ||
          std::memcmp(slot.address.pair, other.address.pair, wire::kIdBytes) != 0)
        continue;
      first = first && (count > 0 || &other == &slot);
      ++count;
    }
    if (first) json.hex(slot.address.agent()).raw(":").number(count);
  }
  json.end('}');
}

void write_recent(Json& json, const Totals& totals) {
  json.key("recent_warnings").begin('[');
  for (std::uint64_t i = totals.recent_count > kRecentWarnings ? totals.recent_count - kRecentWarnings : 0;
       i < totals.recent_count; ++i) {
    const RecentWarning& warning = totals.recent[i % kRecentWarnings];
    json.begin('{').key("ts").time(warning.at);
    json.key("kind").text(wire::kWarningNames[static_cast<std::size_t>(warning.kind)]);
    json.key("agent_id").hex(warning.address.agent()).key("request_id").uuid(warning.address.request_id);
    json.key("argv_summary").text(warning.summary).key("bytes_at_warn").number(warning.bytes).end('}');
  }
  json.end(']');
}

}  // namespace

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& totals,
                       std::span<const Slot> slots) {
  json.begin('{').key("enabled").truth(enabled);
  write_active(json, slots);
  json.key("totals").begin('{').key("requests_received").number(totals.received);
  json.key("requests_allowed").number(totals.allowed).key("requests_denied").number(totals.denied);
  json.key("denial_breakdown").begin('{');
  for (std::size_t i = 0; i < 12; ++i) json.key(wire::kDenialNames[i]).number(totals.reasons[i]);
  json.end('}').key("cap_breaches").begin('{').key("stdout").number(totals.warnings[0]);
  json.key("stderr").number(totals.warnings[1]).key("duration").number(totals.duration_breaches).end('}');
  json.key("cap_warnings").begin('{').key("stdout_approaching").number(totals.warnings[3]);
  json.key("stderr_approaching").number(totals.warnings[4]);
  json.key("duration_approaching").number(totals.warnings[2]).end('}');
  json.key("sessions_started").number(totals.started).key("sessions_completed").number(totals.completed);
  json.key("sessions_cancelled").number(totals.cancelled);
  json.key("audit_write_failures").number(config.audit->failures()).end('}');
  write_recent(json, totals);
  json.key("acl_summary").begin('{').key("loaded_from").text(config.policy_path);
  json.key("loaded_at").time(config.loaded_at);
  json.key("allow_entry_count").number(config.table != nullptr ? config.table->entry_count() : 0);
  json.key("command_entry_count").number(config.table != nullptr ? config.table->rule_count() : 0).end('}');
  write_policy(json, config);
  json.key("audit_degraded").truth(config.audit->degraded()).end('}');
}

void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now) {
  json.begin('{').key("sessions").begin('[');
  for (const Slot& slot : slots) {
    if (slot.session.stage == Stage::free) continue;
    json.begin('{').key("request_id").uuid(slot.address.request_id);
    json.key("agent_id").hex(slot.address.agent()).key("machine_id").hex(slot.address.machine());
    json.key("pid").number(slot.pid).key("started_at").time(slot.started_at);
    json.key("duration_ms").number(now - slot.session.begun);
    json.key("stdout_bytes").number(slot.session.streams[0].total);
    json.key("stderr_bytes").number(slot.session.streams[1].total);
    json.key("argv_summary").text(slot.summary).end('}');
  }
  json.end(']').end('}');
}

}  // namespace x0x
