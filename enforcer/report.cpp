// The documents about a running enforcer. They never hold anything of the policy's rules.
#include "enforcer/server.hpp"
#include "enforcer/system.hpp"

namespace x0x {

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& t,
                       std::span<const Slot> slots) {
  const bool loaded = config.table != nullptr;
  const BlobView empty, &table = loaded ? *config.table : empty;
  json.write("{'enabled':%,'active_sessions':%,'active_per_agent':{", enabled,
             std::ranges::count_if(slots, &Slot::live));
  const char* separator = "";
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto same_agent = [&](const Slot& other) {
      return other.live() && memcmp(other.address.pair, slots[i].address.pair, wire::kIdBytes) == 0;
    };
    if (!slots[i].live() || std::ranges::any_of(slots.first(i), same_agent)) continue;
    json.write(separator).write("%:%", slots[i].address.agent(), std::ranges::count_if(slots, same_agent));
    separator = ",";
  }
  json.write("},'totals':{'requests_received':%,'requests_allowed':%,'requests_denied':%,'denial_breakdown':{",
             t.received, t.allowed, t.denied);
  for (std::size_t i = 0; i < std::size(t.reasons); ++i)
    json.write(i == 0 ? "%:%" : ",%:%", wire::kDenialNames[i], t.reasons[i]);
  json.write("},'cap_breaches':{'stdout':%,'stderr':%,'duration':%}", t.warnings[0], t.warnings[1], t.overdue);
  json.write(",'cap_warnings':{'stdout_approaching':%,'stderr_approaching':%,'duration_approaching':%}", t.warnings[3],
             t.warnings[4], t.warnings[2]);
  json.write(",'sessions_started':%,'sessions_completed':%,'sessions_cancelled':%,'audit_write_failures':%}", t.started,
             t.completed, t.cancelled, config.audit->failures());
  json.write(",'recent_warnings':[");
  const std::uint64_t kept = std::min(t.recent_count, kRecentWarnings);
  for (std::uint64_t i = t.recent_count - kept; i < t.recent_count; ++i) {
    const RecentWarning& w = t.recent[i % kRecentWarnings];
    json.write(i + kept == t.recent_count ? "" : ",");
    json.write("{'ts':%,'kind':%,'agent_id':%,'request_id':%,'argv_summary':%,'bytes_at_warn':%}", Time{w.at},
               wire::kWarningNames[w.kind], w.address.agent(), w.address.id(), w.summary, w.bytes);
  }
  json.write("],'acl_summary':{'loaded_from':%,'loaded_at':%,'allow_entry_count':%,'command_entry_count':%}",
             config.policy_path, Time{config.loaded_at}, loaded ? table.entry_count() : 0,
             loaded ? table.rule_count() : 0);
  json.write(",'policy':{'name':%,'version':%,'digest':%,'expires':%},'audit_degraded':%}",
             loaded ? table.name().bytes : Bytes{}, loaded ? table.policy_version() : 0,
             Hex{loaded ? Bytes(config.digest.bytes) : Bytes{}}, Time{loaded ? table.expires() * 1000 : 0},
             config.audit->degraded());
}

void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now) {
  const char* separator = "{'sessions':[";
  for (const Slot& slot : slots) {
    if (!slot.live()) continue;
    json.write(separator).write("{'request_id':%,'agent_id':%,'machine_id':%,'pid':%,'started_at':%,'duration_ms':%,",
                                slot.address.id(), slot.address.agent(), slot.address.machine(), slot.pid,
                                Time{slot.started_at}, now - slot.session.begun);
    json.write("'stdout_bytes':%,'stderr_bytes':%,'argv_summary':%}", slot.session.streams[0].total,
               slot.session.streams[1].total, slot.summary);
    separator = ",";
  }
  json.write(*separator == ',' ? "]}" : "{'sessions':[]}");
}

}  // namespace x0x
