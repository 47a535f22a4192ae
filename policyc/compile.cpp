#include "policyc/compile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policyc/emit.hpp"
#include "policyc/ephemeral.hpp"
#include "policyc/lower.hpp"
#include "policyc/request.hpp"
#include "policyc/text.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

// What the compiler writes and the reader refuses is a defect of ours, never of the policy.
CompiledPolicy open_emitted(std::vector<std::uint8_t> payload) {
  CompiledPolicy compiled;
  compiled.payload = std::move(payload);
  const Result<BlobView> opened = open_payload(compiled.payload, compiled.storage);
  if (!opened.ok())
    throw UserError(fmt::format("the compiled table is refused by its own reader ({}: {}); please report this policy",
                                fault_name(opened.fault()), fault_message(opened.fault())));
  compiled.table = opened.value();
  return compiled;
}

const Command& command_of(const Policy& policy, std::uint32_t rule) {
  for (const Entry& entry : policy.entries) {
    if (rule < entry.commands.size()) return entry.commands[rule];
    rule -= static_cast<std::uint32_t>(entry.commands.size());
  }
  throw std::logic_error("no such rule");
}

void report_crowded(const Span& place, Diagnostics& diagnostics) {
  diagnostics.report(
      Kind::crowded_index, place,
      fmt::format("more than {} commands or pairs belong into one place of the table's index", blob::kMaxProbes),
      "texts must have been picked for this; leave this one out, or change any text of it");
}

bool has_examples(const Policy& policy) {
  for (const Entry& entry : policy.entries)
    for (const Command& command : entry.commands)
      if (!command.allow.empty() || !command.deny.empty()) return true;
  return false;
}

void run_example(const BlobView& table, const Policy& policy, const Entry& entry, const Example& example,
                 bool should_allow, Diagnostics& diagnostics) {
  OwnedRequest request;
  request.set_pair(entry.agent, entry.machine);
  request.argv = example.argv;
  const Verdict verdict = request.decide(table, policy.not_before.value_or(0));
  if (is_allow(verdict.decision) == should_allow) return;
  if (should_allow) {
    const std::string reason = denial_name(verdict.reason);
    diagnostics.report(Kind::example_failed, example.span,
                       fmt::format("this must be allowed, but is denied: `{}`", reason),
                       "`x0x-policyc explain` shows the nearest command");
  } else {
    const Rule rule = table.rule(verdict.rule);
    diagnostics.report(
        Kind::example_failed, example.span,
        fmt::format("this must be denied, but `exec.allow[{}].commands[{}]` on line {} allows it", rule.entry,
                    verdict.rule - table.entry(rule.entry).first_rule, command_of(policy, verdict.rule).span.line),
        "narrow that command, or drop the example");
  }
}

// A disabled policy denies everything; its examples are about what it would say when enabled.
void run_examples(const Policy& policy, const CompiledPolicy& compiled, Diagnostics& diagnostics) {
  if (!has_examples(policy)) return;
  CompiledPolicy enabled;
  if (!policy.exec.enabled) {
    Policy copy = policy;
    copy.exec.enabled = true;
    enabled = open_emitted(emit(copy));
  }
  const BlobView& table = policy.exec.enabled ? compiled.table : enabled.table;
  for (const Entry& entry : policy.entries) {
    for (const Command& command : entry.commands) {
      for (const Example& example : command.allow) run_example(table, policy, entry, example, true, diagnostics);
      for (const Example& example : command.deny) run_example(table, policy, entry, example, false, diagnostics);
    }
  }
}

}  // namespace

std::optional<CompiledPolicy> compile_policy(const Policy& policy, Diagnostics& diagnostics) {
  const Lowered lowered = lower(policy);
  if (lowered.one_too_many) {
    diagnostics.report(
        Kind::too_ambiguous, command_of(policy, *lowered.one_too_many).argv_span,
        fmt::format("the commands of this pair place their templates in more than {} ways", blob::kMaxShapes),
        "a way is which tokens, counted from the last, are `<INT>` or `<URL_PATH>`, and how long each URL prefix is");
    return std::nullopt;
  }
  if (lowered.crowded_entry) report_crowded(policy.entries[*lowered.crowded_entry].span, diagnostics);
  if (lowered.crowded_rule) report_crowded(command_of(policy, *lowered.crowded_rule).argv_span, diagnostics);
  if (lowered.crowded_entry || lowered.crowded_rule) return std::nullopt;
  CompiledPolicy compiled = open_emitted(emit(policy, lowered));
  run_examples(policy, compiled, diagnostics);
  return compiled;
}

}  // namespace x0x::policyc
