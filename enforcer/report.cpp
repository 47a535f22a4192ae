// The documents about a running enforcer. They never hold anything of the policy's rules.
#include <algorithm>
#include <cstring>

#include "enforcer/server.hpp"

namespace x0x {

namespace {

void write_active(Json& json, std::span<const Slot> slots) {
  std::uint32_t active = 0;
  for (const Slot& slot : slots) active += slot.live();
  json.fields("active_sessions", active).key("active_per_agent").begin('{');
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto same_agent = [&](const Slot& other) {
      return other.live() && std::memcmp(other.address.pair, slots[i].address.pair, wire::kIdBytes) == 0;
    };
    if (!slots[i].live() || std::ranges::any_of(slots.first(i), same_agent)) continue;
    json.value(Hex{slots[i].address.agent()}).colon();
    json.value(static_cast<std::size_t>(std::ranges::count_if(slots, same_agent)));
  }
  json.end('}');
}

void write_recent(Json& json, const Totals& totals) {
  json.key("recent_warnings").begin('[');
  for (std::uint64_t i = totals.recent_count - std::min(totals.recent_count, kRecentWarnings); i < totals.recent_count;
       ++i) {
    const RecentWarning& w = totals.recent[i % kRecentWarnings];
    json.begin('{').fields("ts", Time{w.at}, "kind", wire::kWarningNames[w.kind], "agent_id", Hex{w.address.agent()});
    json.fields("request_id", Uuid{w.address.request_id}, "argv_summary", w.summary, "bytes_at_warn", w.bytes).end('}');
  }
  json.end(']');
}

}  // namespace

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& t,
                       std::span<const Slot> slots) {
  const BlobView empty, &table = config.table != nullptr ? *config.table : empty;
  const bool loaded = config.table != nullptr;
  json.begin('{').fields("enabled", enabled);
  write_active(json, slots);
  json.key("totals").begin('{').fields("requests_received", t.received, "requests_allowed", t.allowed,
                                       "requests_denied", t.denied);
  json.key("denial_breakdown").begin('{');
  for (std::size_t i = 0; i < std::size(t.reasons); ++i) json.fields(wire::kDenialNames[i], t.reasons[i]);
  json.end('}')
      .key("cap_breaches")
      .begin('{')
      .fields("stdout", t.warnings[0], "stderr", t.warnings[1], "duration", t.overdue)
      .end('}');
  json.key("cap_warnings").begin('{').fields("stdout_approaching", t.warnings[3], "stderr_approaching", t.warnings[4]);
  json.fields("duration_approaching", t.warnings[2]).end('}');
  json.fields("sessions_started", t.started, "sessions_completed", t.completed, "sessions_cancelled", t.cancelled);
  json.fields("audit_write_failures", config.audit->failures()).end('}');
  write_recent(json, t);
  json.key("acl_summary").begin('{').fields("loaded_from", config.policy_path, "loaded_at", Time{config.loaded_at});
  json.fields("allow_entry_count", loaded ? table.entry_count() : 0, "command_entry_count",
              loaded ? table.rule_count() : 0)
      .end('}');
  json.key("policy").begin('{').fields("name", loaded ? table.name().bytes : Bytes{}, "version",
                                       loaded ? table.policy_version() : 0);
  json.fields("digest", Hex{loaded ? Bytes(config.digest.bytes) : Bytes{}}, "expires",
              Time{loaded ? table.expires() * 1000 : 0})
      .end('}');
  json.fields("audit_degraded", config.audit->degraded()).end('}');
}

void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now) {
  json.begin('{').key("sessions").begin('[');
  for (const Slot& slot : slots) {
    if (!slot.live()) continue;
    const Address& who = slot.address;
    json.begin('{').fields("request_id", Uuid{who.request_id}, "agent_id", Hex{who.agent()}, "machine_id",
                           Hex{who.machine()});
    json.fields("pid", slot.pid, "started_at", Time{slot.started_at}, "duration_ms", now - slot.session.begun);
    json.fields("stdout_bytes", slot.session.streams[0].total, "stderr_bytes", slot.session.streams[1].total);
    json.fields("argv_summary", slot.summary).end('}');
  }
  json.end(']').end('}');
}

}  // namespace x0x
