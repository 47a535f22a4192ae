// [exec] and [[exec.allow]]. tests/policyc/parse_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "policyc/lint.hpp"
#include "policyc/parse_parts.hpp"

namespace x0x::policyc {

namespace {

struct ExecDraft : Exec {
  Span per_agent{}, total{};
  const toml::node* allow = nullptr;
};

template <auto Member>
void warn_at(Reader& reader, const Field& field, ExecDraft& out) {
  if (const auto value = read_number(reader, field, {UINT64_MAX, true})) out.*Member = *value;
}

void read_per_agent(Reader& reader, const Field& field, ExecDraft& out) {
  number_into<&Exec::max_concurrent_per_agent>(reader, field, out);
  out.per_agent = span_of(reader, field.value);
}

void read_total(Reader& reader, const Field& field, ExecDraft& out) {
  number_into<&Exec::max_concurrent_total>(reader, field, out);
  out.total = span_of(reader, field.value);
}

void read_default_cwd(Reader& reader, const Field& field, ExecDraft& out) {
  out.default_cwd = read_path(reader, field);
  if (out.default_cwd) lint_path("default_cwd", *out.default_cwd, span_of(reader, field.value), reader.diagnostics);
}

void read_audit_log_path(Reader& reader, const Field& field, ExecDraft& out) {
  if (auto path = read_path(reader, field)) out.audit_log_path = std::move(*path);
}

void read_allow(Reader& /*reader*/, const Field& field, ExecDraft& out) { out.allow = &field.value; }

constexpr Key<ExecDraft> kExecKeys[] = {
    {"enabled", bool_into<&Exec::enabled>},
    {"max_stdout_bytes", number_into<&Exec::max_stdout_bytes>},
    {"max_stderr_bytes", number_into<&Exec::max_stderr_bytes>},
    {"max_stdin_bytes", number_into<&Exec::max_stdin_bytes>},
    {"max_duration_secs", number_into<&Exec::max_duration_secs>},
    {"max_concurrent_per_agent", read_per_agent},
    {"max_concurrent_total", read_total},
    {"warn_stdout_bytes", warn_at<&Exec::warn_stdout_bytes>},
    {"warn_stderr_bytes", warn_at<&Exec::warn_stderr_bytes>},
    {"warn_duration_secs", warn_at<&Exec::warn_duration_secs>},
    {"default_cwd", read_default_cwd},
    {"audit_log_path", read_audit_log_path},
    {"audit_tasklist_id", text_into<&Exec::audit_tasklist_id>},
    {"allow", read_allow},
};

void check_concurrency(Reader& reader, const ExecDraft& exec) {
  if (exec.max_concurrent_per_agent <= exec.max_concurrent_total) return;
  const bool per_agent_given = exec.per_agent.line != 0;
  reader.diagnostics.report(
      Kind::concurrency_order, per_agent_given ? exec.per_agent : exec.total,
      fmt::format("`max_concurrent_per_agent` is {}, more than `max_concurrent_total`, which is {}",
                  exec.max_concurrent_per_agent, exec.max_concurrent_total),
      per_agent_given && exec.total.line != 0 ? "lower the one or raise the other"
                                              : "the one that is not written has its default; write both");
}

void clamp_warnings(Exec& exec) {
  exec.warn_stdout_bytes = std::min(exec.warn_stdout_bytes, exec.max_stdout_bytes);
  exec.warn_stderr_bytes = std::min(exec.warn_stderr_bytes, exec.max_stderr_bytes);
  exec.warn_duration_secs = std::min(exec.warn_duration_secs, exec.max_duration_secs);
}

struct EntryDraft {
  Entry& entry;
  bool agent = false, machine = false;  // read and valid
  const toml::node* commands = nullptr;
  Span max_duration{};
};

void read_agent(Reader& reader, const Field& field, EntryDraft& out) {
  const auto id = read_hex(reader, field, Kind::invalid_id);
  if (id) out.entry.agent = *id;
  out.agent = id.has_value();
}

void read_machine(Reader& reader, const Field& field, EntryDraft& out) {
  const auto id = read_hex(reader, field, Kind::invalid_id);
  if (id) out.entry.machine = *id;
  out.machine = id.has_value();
}

void read_description(Reader& reader, const Field& field, EntryDraft& out) {
  out.entry.description = read_text(reader, field);
}

void read_entry_duration(Reader& reader, const Field& field, EntryDraft& out) {
  number_into<&Entry::max_duration_secs>(reader, field, out.entry);
  out.max_duration = span_of(reader, field.value);
}

void read_commands(Reader& /*reader*/, const Field& field, EntryDraft& out) { out.commands = &field.value; }

constexpr Key<EntryDraft> kEntryKeys[] = {
    {"agent_id", read_agent},          {"machine_id", read_machine},
    {"description", read_description}, {"max_duration_secs", read_entry_duration},
    {"commands", read_commands},
};

void check_entry(Reader& reader, const toml::table& table, const Exec& exec, const EntryDraft& draft) {
  for (const std::string_view required : {"agent_id", "machine_id", "commands"}) {
    if (table.contains(required)) continue;
    reader.diagnostics.report(Kind::missing_key, draft.entry.span,
                              required == "commands" ? "this entry allows no command"
                                                     : fmt::format("`{}` is missing from this entry", required),
                              required == "commands" ? "add a `[[exec.allow.commands]]` table below it"
                                                     : "an entry is for one agent on one machine");
  }
  if (draft.entry.max_duration_secs > exec.max_duration_secs)
    reader.diagnostics.report(
        Kind::setting_without_effect, draft.max_duration,
        fmt::format("`max_duration_secs` is above the {} of `[exec]` and has no effect", exec.max_duration_secs));
}

}  // namespace

bool parse_entry(Reader& reader, const toml::table& table, const Exec& exec, Entry& entry) {
  EntryDraft draft{entry};
  entry.span = span_of(reader, table);
  read_keys(reader, table, kEntryKeys, "[[exec.allow]]", draft);
  check_entry(reader, table, exec, draft);
  if (draft.commands == nullptr) return false;

  const toml::array* array = draft.commands->as_array();
  if (array != nullptr && array->empty())
    reader.diagnostics.report(Kind::empty_array, span_of(reader, *draft.commands), "this entry allows no command");
  const auto tables = read_tables(reader, Field{"commands", *draft.commands}, "exec.allow.commands");
  entry.commands.reserve(tables.size());
  for (const toml::table* command_table : tables) {
    Command& command = entry.commands.emplace_back();
    if (!parse_command(reader, *command_table, exec, entry, command)) entry.commands.pop_back();
  }
  return draft.agent && draft.machine;
}

void parse_exec(Reader& reader, const toml::table& table, Policy& policy) {
  ExecDraft draft;
  read_keys(reader, table, kExecKeys, "[exec]", draft);
  check_concurrency(reader, draft);
  clamp_warnings(draft);
  policy.exec = draft;
  if (draft.allow == nullptr) return;
  const auto tables = read_tables(reader, Field{"allow", *draft.allow}, "exec.allow");
  policy.entries.reserve(tables.size());
  for (const toml::table* entry_table : tables) {
    Entry& entry = policy.entries.emplace_back();
    if (!parse_entry(reader, *entry_table, policy.exec, entry)) policy.entries.pop_back();
  }
}

std::vector<std::string_view> exec_keys() { return names_of(kExecKeys); }
std::vector<std::string_view> entry_keys() { return names_of(kEntryKeys); }

}  // namespace x0x::policyc
