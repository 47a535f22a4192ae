// The documents about a running enforcer. They never hold anything of the policy's rules.
#include "enforcer/server.hpp"

namespace x0x {

static const char* comma(const Json& json) { return strchr("[{", json.view().back()) != nullptr ? "" : ","; }

void write_diagnostics(Json& json, const ServerConfig& config, bool enabled, const Totals& t,
                       std::span<const Slot> slots) {
  json.write(kActive, enabled, std::ranges::count_if(slots, &Slot::live));
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Address& agent = slots[i].request.address;
    if (slots[i].live() && active_of(slots.first(i), agent) == 0)
      json.write(comma(json)).write("%:%", agent.agent(), active_of(slots, agent));
  }
  json.write(kRequestTotals, t.allowed + t.denied, t.allowed, t.denied);
  for (std::size_t i = 0; i < std::size(t.reasons); ++i)
    json.write(comma(json)).write("%:%", wire::kDenialNames[i], t.reasons[i]);
  json.write(kOtherTotals, t.warnings[0], t.warnings[1], t.overdue, t.warnings[3], t.warnings[4], t.warnings[2],
             t.started, t.completed, t.cancelled, config.audit->failures());
  for (std::uint64_t i = std::max(t.recent_count, kRecentWarnings) - kRecentWarnings; i < t.recent_count; ++i) {
    const RecentWarning& w = t.recent[i % kRecentWarnings];
    json.write(comma(json))
        .write(kRecentWarning, Time{w.at}, wire::kWarningNames[w.kind], w.address.agent(), w.address.id(), w.summary,
               w.bytes);
  }
  const blob::Header& h = config.table.header();
  json.write(kAclSummary, config.policy_path, Time{config.loaded_at}, h.entry_count, h.rule_count,
             config.table.text(h.name).bytes, h.policy_version, Hex{config.digest}, Time{h.expires * 1000},
             config.audit->degraded());
}

void write_sessions(Json& json, std::span<const Slot> slots, std::uint64_t now) {
  json.write("{'sessions':[");
  for (const Slot& slot : slots) {
    const Address& who = slot.request.address;
    if (!slot.live()) continue;
    json.write(comma(json))
        .write(kSessionLine, who.id(), who.agent(), who.machine(), slot.progress.command, Time{slot.started_at},
               now - slot.session.begun, slot.session.streams[0].total, slot.session.streams[1].total, slot.summary);
  }
  json.write("]}");
}

}  // namespace x0x
