#include "policyc/read_table.hpp"

#include <algorithm>

namespace x0x::policyc {

using namespace blob;

namespace {

std::optional<std::string> optional_text(Text text) {
  return text.present() ? std::optional(to_string(text.bytes)) : std::nullopt;
}

std::optional<std::uint64_t> optional_number(std::uint64_t number) {
  return number != 0 ? std::optional(number) : std::nullopt;
}

Example example_of(Bytes tokens) {
  Example example;
  for (std::string rest = to_string(tokens); !rest.empty();) {
    const std::size_t end = rest.find('\0');
    example.argv.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return example;
}

void read_options(const BlobView& view, const Options& o, Command& command) {
  command.exe = optional_text(view.text(o.exe));
  command.reason = optional_text(view.text(o.reason));
  command.cwd = optional_text(view.text(o.cwd));
  if ((o.flags & kOptionHasSha256) != 0) std::copy_n(o.sha256, 32, command.sha256.emplace().begin());
  command.stdin_allowed = (o.flags & kOptionNoStdin) == 0;
  command.network = (o.flags & kOptionNoNetwork) == 0;
  command.audit_hash = (o.flags & kOptionAuditHash) != 0;
  command.max_duration_secs = o.max_duration_secs;
  command.max_stdout_bytes = o.max_stdout_bytes;
  command.max_stderr_bytes = o.max_stderr_bytes;
  command.max_stdin_bytes = o.max_stdin_bytes;
  command.limits = {o.limit_cpu_secs, o.limit_memory_bytes, o.limit_file_bytes, o.limit_open_files, o.limit_processes};
  std::uint32_t item = o.first_item;
  for (std::uint32_t i = 0; i < o.env_count; ++i) {
    const std::string pair = to_string(view.item(item++).bytes);
    const std::size_t equals = pair.find('=');
    command.env.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
  }
  if ((o.flags & kOptionHasWritable) != 0) command.writable.emplace();
  for (std::uint32_t i = 0; i < o.writable_count; ++i) command.writable->push_back(to_string(view.item(item++).bytes));
  for (std::uint32_t i = 0; i < o.allow_count; ++i) command.allow.push_back(example_of(view.item(item++).bytes));
  for (std::uint32_t i = 0; i < o.deny_count; ++i) command.deny.push_back(example_of(view.item(item++).bytes));
}

// Shapes own the patterns in order: the last that begins before the one after this.
Shape shape_of(const BlobView& view, std::uint32_t pattern) {
  std::uint32_t low = 0, high = view.header().shape_count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (view.shape(middle).first_pattern <= pattern ? low : high) = middle;
  }
  return view.shape(low);
}

}  // namespace

std::string to_string(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::vector<Token> rule_argv(const BlobView& view, std::uint32_t rule) {
  const std::uint32_t number = view.rule(rule).pattern;
  std::vector<Token> argv;
  for (const std::string& piece : example_of(view.pieces(view.pattern(number))).argv)
    argv.push_back({Token::Kind::literal, piece, {}});
  const Shape shape = shape_of(view, number);
  auto token = argv.rbegin();
  for (std::uint32_t i = 0; i < shape.template_count; ++i, ++token) {
    const Template t = view.template_at(shape.first_template + i);
    token += t.after;
    token->kind = t.piece_bytes == 0 ? Token::Kind::integer : Token::Kind::url_path;
    if (t.piece_bytes != 0) token->text.pop_back();  // the path's first slash
  }
  return argv;
}

Policy read_table(const BlobView& view) {
  Policy policy;
  policy.name = optional_text(view.text(view.header().name));
  policy.version = view.header().policy_version;
  policy.not_before = optional_number(view.header().not_before);
  policy.expires = optional_number(view.header().expires);
  for (std::uint32_t i = 0; i < view.header().audience_count; ++i) {
    if (!policy.audience) policy.audience.emplace();
    policy.audience->push_back(to_string(view.item(i).bytes));
  }
  const Caps caps = view.header().caps;
  policy.exec = {view.enabled(),
                 caps.max_stdout_bytes,
                 caps.max_stderr_bytes,
                 caps.max_stdin_bytes,
                 caps.max_duration_secs,
                 view.header().max_concurrent_per_agent,
                 view.header().max_concurrent_total,
                 caps.warn_stdout_bytes,
                 caps.warn_stderr_bytes,
                 caps.warn_duration_secs,
                 optional_text(view.text(view.header().default_cwd)),
                 to_string(view.text(view.header().audit_log_path).bytes),
                 optional_text(view.text(view.header().audit_tasklist_id))};
  std::uint32_t rule = 0;
  for (std::uint32_t i = 0; i < view.header().entry_count; ++i) {
    const blob::Entry from = view.entry(i);
    Entry& entry = policy.entries.emplace_back();
    const Pair pair = view.pairs().at(from.pair);
    std::copy_n(pair.key, 32, entry.agent.begin());
    std::copy_n(pair.key + 32, 32, entry.machine.begin());
    entry.description = optional_text(view.text(from.description));
    entry.max_duration_secs = from.max_duration_secs;
    const std::uint32_t end =
        i + 1 < view.header().entry_count ? view.entry(i + 1).first_rule : view.header().rule_count;
    for (; rule < end; ++rule) {
      Command& command = entry.commands.emplace_back();
      command.argv = rule_argv(view, rule);
      if (view.rule(rule).options != kNone) read_options(view, view.options(rule), command);
    }
  }
  return policy;
}

}  // namespace x0x::policyc
