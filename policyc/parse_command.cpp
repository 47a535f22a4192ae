// [[exec.allow.commands]]: the argv and what this project adds to it. tests/policyc/parse_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "policyc/env_names.hpp"
#include "policyc/lint.hpp"
#include "policyc/parse_parts.hpp"
#include "policyc/text.hpp"
#include "policyc/toml_text.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

struct CommandDraft {
  Command& command;
  CommandSites sites{};
  Span max_duration{}, max_stdout{}, max_stderr{}, max_stdin{};
  bool argv_valid = false;
};

// What a byte of a token calls for. Most tokens hold nothing but plain bytes and are read in one pass.
enum ByteClass : std::uint8_t { kPlain = 0, kBracket = 1, kForbidden = 2, kOdd = 4 };

constexpr std::array<std::uint8_t, 256> byte_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t c = 0; c < classes.size(); ++c) classes[c] = c < 0x20 || c >= 0x7f ? kOdd : kPlain;
  for (const char c : blob::kForbiddenBytes) classes[static_cast<unsigned char>(c)] |= kForbidden;
  classes['<'] = classes['>'] = kBracket;  // the template grammar's
  return classes;
}
constexpr auto kByteClasses = byte_classes();

std::uint8_t classes_of(std::string_view text) {
  std::uint8_t classes = kPlain;
  for (const char c : text) classes |= kByteClasses[static_cast<unsigned char>(c)];
  return classes;
}

// Each character that no request may hold, once.
void report_forbidden(Reader& reader, const Field& field, std::string_view text) {
  std::string seen;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool forbidden = (kByteClasses[static_cast<unsigned char>(c)] & kForbidden) != 0;
    if (!forbidden || seen.find(c) != std::string::npos) continue;
    seen += c;
    const std::size_t index = count_code_points(text.substr(0, at));
    const std::string shown = c == '`' ? "a backtick" : c == '\n' ? "a line break" : quote(std::string_view(&c, 1));
    reader.diagnostics.report(Kind::forbidden_character,
                              place_in_string(reader.source, span_of(reader, field.value), index, 1),
                              fmt::format("{} holds {}, which no request may hold", field.name(), shown),
                              "the enforcer refuses such a request, so this command could never match");
  }
}

bool check_length(Reader& reader, const Field& field, std::size_t bytes) {
  if (bytes <= blob::kMaxTokenBytes) return true;
  reader.diagnostics.report(Kind::token_too_long, span_of(reader, field.value),
                            fmt::format("{} is longer than {} bytes", field.name(), blob::kMaxTokenBytes),
                            "the kernel passes no longer string to a program");
  return false;
}

bool check_argc(Reader& reader, const Field& field, const toml::array& array) {
  if (array.size() <= blob::kMaxArgc) return true;
  reader.diagnostics.report(Kind::too_many_tokens, span_of(reader, array[blob::kMaxArgc]),
                            fmt::format("{} has more than {} tokens", field.name(), blob::kMaxArgc));
  return false;
}

bool check_program(Reader& reader, const Field& field, const Token& token) {
  const auto report = [&](Kind kind, std::string message, std::string help) {
    reader.diagnostics.report(kind, span_of(reader, field.value), std::move(message), std::move(help));
    return false;
  };
  if (token.kind != Token::Kind::literal)
    return report(Kind::template_in_program, "`argv[0]` must not be a template",
                  "it would let the requester choose the program");
  if (token.text.empty()) return report(Kind::empty_program, "`argv[0]` must not be empty", "name the program");
  if (token.text.find('/') != std::string::npos && token.text[0] != '/')
    return report(Kind::relative_program, "`argv[0]` is a relative path",
                  "write a bare name, which is looked up in the fixed PATH, or an absolute path");
  return true;
}

void report_arg(Reader& reader, const Arg& arg, Span literal) {
  std::vector<Part> parts;
  for (const ArgProblem& problem : arg.problems) parts.push_back({problem.first, problem.count});
  const std::vector<Span> places = places_in_string(reader.source, literal, parts);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ArgProblem& problem = arg.problems[i];
    reader.diagnostics.report(problem.kind, places[i], problem.message, problem.help);
  }
}

bool read_token(Reader& reader, const Field& field, Token& token) {
  const auto* string = field.value.as_string();
  if (string == nullptr) {
    report_wrong_type(reader, field, "a string", field.value.is_integer() ? "put it in quotes" : std::string());
    return false;
  }
  const std::string& text = string->get();
  token.span = span_of(reader, field.value);
  const std::uint8_t classes = classes_of(text);
  const Arg arg = (classes & kBracket) != 0 ? reader.args.read(text) : Arg{Token::Kind::literal, text, {}};
  report_arg(reader, arg, token.span);
  if ((classes & kForbidden) != 0) report_forbidden(reader, field, text);
  if ((classes & kOdd) != 0) report_invisible(reader, text, field);
  token.kind = arg.kind;
  token.text = arg.text;
  const std::size_t bytes = arg.text.size() + (arg.kind == Token::Kind::url_path ? 1 : 0);
  bool valid = arg.problems.empty() && (classes & kForbidden) == 0;
  valid &= check_length(reader, field, bytes);
  if (valid && field.index == 0) valid = check_program(reader, field, token);
  return valid;
}

void read_argv(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.argv_span = span_of(reader, field.value);
  const toml::array* array = read_array(reader, field, "an array of strings");
  if (array == nullptr) return;
  if (array->empty()) {
    reader.diagnostics.report(Kind::empty_array, draft.command.argv_span, "`argv` must have at least one token",
                              "its first token is the program");
    return;
  }
  bool valid = check_argc(reader, field, *array);
  draft.command.argv.resize(array->size());
  std::int64_t index = 0;
  for (const toml::node& element : *array) {
    valid &= read_token(reader, Field{field.key, element, index}, draft.command.argv[static_cast<std::size_t>(index)]);
    ++index;
  }
  draft.argv_valid = valid;
}

void read_exe(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.exe = read_path(reader, field);
  draft.sites.exe = span_of(reader, field.value);
}

void read_sha256(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.sha256 = read_hex(reader, field, Kind::invalid_sha256);
}

void read_reason(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.reason = read_text(reader, field);
}

void read_cwd(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.cwd = read_path(reader, field);
  draft.sites.cwd = span_of(reader, field.value);
}

template <auto Member>
void flag(Reader& reader, const Field& field, CommandDraft& draft) {
  bool_into<Member>(reader, field, draft.command);
}

template <auto Member, auto Site>
void cap(Reader& reader, const Field& field, CommandDraft& draft) {
  number_into<Member>(reader, field, draft.command);
  draft.*Site = span_of(reader, field.value);
}

void read_audit(Reader& reader, const Field& field, CommandDraft& draft) {
  const auto choice = read_text(reader, field);
  if (!choice || *choice == "full") return;
  draft.command.audit_hash = *choice == "hash";
  if (!draft.command.audit_hash)
    reader.diagnostics.report(Kind::unknown_choice, span_of(reader, field.value),
                              fmt::format("`audit` cannot be {}", quote(*choice)),
                              "write `\"full\"` for the argv in clear or `\"hash\"` for its digest");
}

bool check_env_name(Reader& reader, const toml::key& key) {
  const std::string_view name = key.str();
  const Span span = span_of(reader, key.source());
  if (!is_env_identifier(name)) {
    reader.diagnostics.report(Kind::invalid_env_name, span,
                              fmt::format("{} is not a name for an environment variable", quote(name)),
                              "use letters, digits and `_`, and do not start with a digit");
    return false;
  }
  if (const std::string_view why = why_dangerous(name); !why.empty()) {
    reader.diagnostics.report(Kind::dangerous_env_name, span, fmt::format("`env` must not set {}", quote(name)),
                              std::string(why));
    return false;
  }
  return true;
}

void read_env(Reader& reader, const Field& field, CommandDraft& draft) {
  const toml::table* table = read_table(reader, field, "exec.allow.commands.env");
  if (table == nullptr) return;
  for (const auto& [key, value] : *table) {
    const bool name_valid = check_env_name(reader, key);
    const Field variable{key.str(), value};
    auto text = read_text(reader, variable);
    if (!text || !name_valid || !check_length(reader, variable, key.str().size() + 1 + text->size())) continue;
    draft.command.env.push_back({std::string(key.str()), std::move(*text)});
  }
  std::sort(draft.command.env.begin(), draft.command.env.end(),
            [](const EnvVar& a, const EnvVar& b) { return a.name < b.name; });
}

constexpr Key<Limits> kLimitsKeys[] = {
    {"cpu_secs", number_into<&Limits::cpu_secs>},     {"memory_bytes", number_into<&Limits::memory_bytes>},
    {"file_bytes", number_into<&Limits::file_bytes>}, {"open_files", number_into<&Limits::open_files>},
    {"processes", number_into<&Limits::processes>},
};

void read_limits(Reader& reader, const Field& field, CommandDraft& draft) {
  const toml::table* table = read_table(reader, field, "exec.allow.commands.limits");
  if (table != nullptr) read_keys(reader, *table, kLimitsKeys, "limits", draft.command.limits);
}

void read_writable(Reader& reader, const Field& field, CommandDraft& draft) {
  draft.command.writable = read_set(reader, field, read_path);
}

std::optional<Example> read_example(Reader& reader, const Field& field) {
  const toml::array* array = read_array(reader, field, "an array of strings");
  if (array == nullptr || !check_argc(reader, field, *array)) return std::nullopt;
  Example example{{}, span_of(reader, field.value)};
  std::int64_t index = 0;
  for (const toml::node& element : *array) {
    const Field token{field.key, element, index++};
    auto text = read_text(reader, token);
    if (!text || !check_length(reader, token, text->size())) return std::nullopt;
    example.argv.push_back(std::move(*text));
  }
  return example;
}

template <auto Member>
void examples(Reader& reader, const Field& field, CommandDraft& draft) {
  const toml::array* array = read_array(reader, field, "an array of argv arrays");
  if (array == nullptr) return;
  std::int64_t index = 0;
  for (const toml::node& element : *array) {
    const Field item{field.key, element, index++};
    if (element.is_string()) {
      report_wrong_type(reader, item, "an array of strings", "an example is a whole argv: `[[\"ls\", \"-l\"]]`");
      continue;
    }
    if (auto example = read_example(reader, item)) (draft.command.*Member).push_back(std::move(*example));
  }
}

constexpr Key<CommandDraft> kCommandKeys[] = {
    {"argv", read_argv},
    {"exe", read_exe},
    {"sha256", read_sha256},
    {"reason", read_reason},
    {"cwd", read_cwd},
    {"stdin", flag<&Command::stdin_allowed>},
    {"network", flag<&Command::network>},
    {"audit", read_audit},
    {"max_duration_secs", cap<&Command::max_duration_secs, &CommandDraft::max_duration>},
    {"max_stdout_bytes", cap<&Command::max_stdout_bytes, &CommandDraft::max_stdout>},
    {"max_stderr_bytes", cap<&Command::max_stderr_bytes, &CommandDraft::max_stderr>},
    {"max_stdin_bytes", cap<&Command::max_stdin_bytes, &CommandDraft::max_stdin>},
    {"env", read_env},
    {"limits", read_limits},
    {"writable", read_writable},
    {"allow", examples<&Command::allow>},
    {"deny", examples<&Command::deny>},
};

void check_cap(Reader& reader, std::string_view key, Span span, std::uint64_t own, std::uint64_t outer,
               std::string_view of) {
  if (own <= outer) return;
  reader.diagnostics.report(Kind::setting_without_effect, span,
                            fmt::format("`{}` is above the {} of {} and has no effect", key, outer, of));
}

void check_caps(Reader& reader, const Exec& exec, const Entry& entry, const CommandDraft& draft) {
  const Command& command = draft.command;
  const bool entry_cap = entry.max_duration_secs != 0 && entry.max_duration_secs < exec.max_duration_secs;
  check_cap(reader, "max_duration_secs", draft.max_duration, command.max_duration_secs,
            entry_cap ? entry.max_duration_secs : exec.max_duration_secs, entry_cap ? "its entry" : "`[exec]`");
  check_cap(reader, "max_stdout_bytes", draft.max_stdout, command.max_stdout_bytes, exec.max_stdout_bytes, "`[exec]`");
  check_cap(reader, "max_stderr_bytes", draft.max_stderr, command.max_stderr_bytes, exec.max_stderr_bytes, "`[exec]`");
  check_cap(reader, "max_stdin_bytes", draft.max_stdin, command.max_stdin_bytes, exec.max_stdin_bytes, "`[exec]`");
  if (!command.stdin_allowed && command.max_stdin_bytes != 0)
    reader.diagnostics.report(Kind::setting_without_effect, draft.max_stdin,
                              "`max_stdin_bytes` has no effect because `stdin = false`", "remove one of the two");
}

}  // namespace

bool parse_command(Reader& reader, const toml::table& table, const Exec& exec, const Entry& entry, Command& command) {
  CommandDraft draft{command};
  command.span = span_of(reader, table);
  read_keys(reader, table, kCommandKeys, "[[exec.allow.commands]]", draft);
  check_caps(reader, exec, entry, draft);
  if (!table.contains("argv"))
    reader.diagnostics.report(Kind::missing_key, command.span, "`argv` is missing from this command");
  if (draft.argv_valid) lint_command(command, draft.sites, reader.diagnostics);
  return draft.argv_valid;
}

std::vector<std::string_view> command_keys() { return names_of(kCommandKeys); }
std::vector<std::string_view> limits_keys() { return names_of(kLimitsKeys); }

}  // namespace x0x::policyc
