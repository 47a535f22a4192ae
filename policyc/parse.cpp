#include "policyc/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "policyc/check.hpp"
#include "policyc/parse_parts.hpp"
#include "policyc/suggest.hpp"
#include "policyc/text.hpp"
#include "policyc/toml_error.hpp"
#include "policyc/toml_text.hpp"

namespace x0x::policyc {

namespace {

struct PolicyDraft {
  Policy& policy;
  Span expires{};
};

void read_version(Reader& reader, const Field& field, PolicyDraft& draft) {
  if (const auto version = read_number(reader, field)) draft.policy.version = *version;
}

void read_not_before(Reader& reader, const Field& field, PolicyDraft& draft) {
  draft.policy.not_before = read_time(reader, field);
}

void read_expires(Reader& reader, const Field& field, PolicyDraft& draft) {
  draft.policy.expires = read_time(reader, field);
  draft.expires = span_of(reader, field.value);
}

void read_name(Reader& reader, const Field& field, PolicyDraft& draft) { draft.policy.name = read_text(reader, field); }

std::optional<std::string> read_node_name(Reader& reader, const Field& field) {
  auto name = read_text(reader, field);
  if (!name || !name->empty()) return name;
  reader.diagnostics.report(Kind::empty_string, span_of(reader, field.value),
                            fmt::format("{} must not be empty", field.name()));
  return std::nullopt;
}

void read_audience(Reader& reader, const Field& field, PolicyDraft& draft) {
  const toml::array* array = field.value.as_array();
  if (array != nullptr && array->empty()) {
    reader.diagnostics.report(Kind::empty_array, span_of(reader, field.value), "`audience` must name at least one node",
                              "remove the key to let every node load it");
    return;
  }
  draft.policy.audience = read_set(reader, field, read_node_name);
}

constexpr Key<PolicyDraft> kPolicyKeys[] = {
    {"name", read_name},       {"version", read_version},   {"not_before", read_not_before},
    {"expires", read_expires}, {"audience", read_audience},
};

void parse_policy_table(Reader& reader, const toml::table& table, Policy& policy) {
  PolicyDraft draft{policy};
  read_keys(reader, table, kPolicyKeys, "[policy]", draft);
  policy.policy_span = span_of(reader, table);
  if (policy.not_before && policy.expires && *policy.not_before >= *policy.expires)
    reader.diagnostics.report(Kind::empty_window, draft.expires, "`expires` is not after `not_before`",
                              "there is no moment at which a node could use this policy");
}

// The top-level names of the language.
constexpr std::string_view kTopLevel[] = {"exec", "policy"};

bool looks_like_exec(const toml::node& value) {
  const toml::table* table = value.as_table();
  return table != nullptr && (table->contains("allow") || table->contains("enabled"));
}

void report_unknown_top_level(Reader& reader, const toml::key& key, const toml::node& value) {
  const std::string_view name = key.str();
  const Span span = span_of(reader, key.source());
  const bool is_table = value.is_table() || value.is_array_of_tables();
  std::optional<std::string_view> meant = nearest(name, kTopLevel);
  if (!meant && looks_like_exec(value)) meant = "exec";
  if (meant) {
    reader.diagnostics.report(Kind::misspelt_table, span,
                              fmt::format("unknown top-level {} {}", is_table ? "table" : "key", quote(name)),
                              fmt::format("did you mean `[{}]`?", *meant));
    return;
  }
  std::string help = "nothing reads it; remove it";
  if (const auto home = table_of_key(name)) help = fmt::format("`{}` belongs in `{}`", name, *home);
  reader.diagnostics.report(Kind::unknown_table, span,
                            fmt::format("unknown top-level {} {} is ignored", is_table ? "table" : "key", quote(name)),
                            std::move(help));
}

void parse_document(Reader& reader, const toml::table& document, Policy& policy) {
  policy.policy_span = {1, 1, 1};
  for (const auto& [key, value] : document) {
    const Field field{key.str(), value};
    if (key.str() == "policy") {
      if (const auto* table = read_table(reader, field, "policy")) parse_policy_table(reader, *table, policy);
    } else if (key.str() == "exec") {
      if (const auto* table = read_table(reader, field, "exec")) parse_exec(reader, *table, policy);
    } else {
      report_unknown_top_level(reader, key, value);
    }
  }
}

bool check_bytes(const Source& source, Diagnostics& diagnostics) {
  for (const Source::BadByte& bad : source.bad_bytes) {
    if (bad.value == 0) {
      diagnostics.report(Kind::nul_byte, bad.span, "the file holds a NUL byte", "is it a text file?");
    } else {
      diagnostics.report(Kind::invalid_utf8, bad.span,
                         fmt::format("the byte 0x{:02x} is not valid UTF-8 here", bad.value), "save the file as UTF-8");
    }
  }
  return source.bad_bytes.empty();
}

}  // namespace

std::optional<Policy> parse_policy(const Source& source, Diagnostics& diagnostics) {
  if (!check_bytes(source, diagnostics) || !within_limits(source, diagnostics)) return std::nullopt;
  Policy policy;
  try {
    const toml::table document = toml::parse(std::string_view(source.text));
    Reader reader{source, diagnostics};
    parse_document(reader, document, policy);
  } catch (const toml::parse_error& error) {
    report_toml_error(source, error, diagnostics);
  }
  check_shadowing(policy, diagnostics);
  diagnostics.sort();
  if (diagnostics.errors() > 0) return std::nullopt;
  return policy;
}

const std::vector<TableKeys>& all_table_keys() {
  static const std::vector<TableKeys> tables = {
      {"[policy]", names_of(kPolicyKeys)},         {"[exec]", exec_keys()},   {"[[exec.allow]]", entry_keys()},
      {"[[exec.allow.commands]]", command_keys()}, {"limits", limits_keys()},
  };
  return tables;
}

std::optional<std::string_view> table_of_key(std::string_view key) {
  for (const TableKeys& table : all_table_keys())
    if (std::find(table.keys.begin(), table.keys.end(), key) != table.keys.end()) return table.table;
  return std::nullopt;
}

}  // namespace x0x::policyc
