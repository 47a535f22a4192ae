#include "policyc/emit.hpp"

#include <algorithm>
#include <string_view>

#include "schema/blob_format.hpp"

namespace x0x::policyc {

using namespace blob;

namespace {

// A growing section of little-endian numbers.
class Section {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint64_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  std::size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

std::string joined(const std::vector<std::string>& argv) {
  std::string tokens;
  for (const std::string& token : argv) tokens.append(token).push_back('\0');
  return tokens;
}

std::vector<std::string> sorted(std::vector<std::string> items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

std::vector<std::string> env_items(const Command& command) {
  std::vector<std::string> items;
  for (const EnvVar& variable : command.env) items.push_back(variable.name + "=" + variable.value);
  return sorted(items);
}

std::vector<std::string> example_items(const std::vector<Example>& examples) {
  std::vector<std::string> items;
  items.reserve(examples.size());
  for (const Example& example : examples) items.push_back(joined(example.argv));
  return sorted(items);
}

std::uint32_t option_flags(const Command& c) {
  return (c.stdin_allowed ? 0 : kOptionNoStdin) | (c.network ? 0 : kOptionNoNetwork) |
         (c.audit_hash ? kOptionAuditHash : 0) | (c.sha256 ? kOptionHasSha256 : 0) |
         (c.writable ? kOptionHasWritable : 0);
}

bool has_options(const Command& c) {
  const Limits& l = c.limits;
  const std::uint64_t numbers = c.max_duration_secs | c.max_stdout_bytes | c.max_stderr_bytes | c.max_stdin_bytes |
                                l.cpu_secs | l.memory_bytes | l.file_bytes | l.open_files | l.processes;
  return option_flags(c) != 0 || c.exe || c.reason || c.cwd || numbers != 0 || !c.env.empty() || !c.allow.empty() ||
         !c.deny.empty();
}

class Emitter {
 public:
  Emitter(const Policy& policy, const Lowered& lowered) : policy_(policy), lowered_(lowered) {}

  std::vector<std::uint8_t> run() {
    // Texts are numbered in the order the reader meets them: header, then each entry's, with its rules' options.
    header_texts();
    pairs_and_shapes();
    entries_and_rules();
    Section payload = header();
    for (const Section* s :
         {&pairs_, &shapes_, &templates_, &patterns_, &entries_, &rules_, &options_, &items_, &pieces_, &texts_})
      payload.raw(s->bytes());
    return {payload.bytes().begin(), payload.bytes().end()};
  }

 private:
  void text(Section& section, std::string_view value) {
    section.u32(texts_.size());
    section.u32(value.size());
    texts_.raw(value);
    texts_.u8(0);
  }
  void text(Section& section, const std::optional<std::string>& value) {
    if (value) return text(section, std::string_view(*value));
    section.u32(kNone);
    section.u32(0);
  }

  void header_texts() {
    text(header_texts_, policy_.name);
    text(header_texts_, policy_.exec.default_cwd);
    text(header_texts_, std::string_view(policy_.exec.audit_log_path));
    text(header_texts_, policy_.exec.audit_tasklist_id);
    if (policy_.audience) add_items(sorted(*policy_.audience));
  }

  void add_items(const std::vector<std::string>& items) {
    for (const std::string& item : items) text(items_, std::string_view(item));
  }

  void pairs_and_shapes() {
    for (const LoweredPair& pair : lowered_.pairs) {
      pairs_.u32(pair.place.tag);
      pairs_.u32(pair.place.start);
      pairs_.u32(pair.first_shape);
      pairs_.u32(pair.shape_count);
      pairs_.raw(pair.key);
    }
    for (const LoweredShape& shape : lowered_.shapes) {
      shapes_.u32(templates_.size() / sizeof(blob::Template));
      shapes_.u32(shape.templates.size() / sizeof(blob::Template));
      shapes_.u32(shape.first_pattern);
      shapes_.u32(shape.pattern_count);
      templates_.raw(shape.templates);
    }
    for (const LoweredPattern& pattern : lowered_.patterns) {
      patterns_.u32(pattern.place.tag);
      patterns_.u32(pattern.place.start);
      patterns_.u32(pieces_.size());
      patterns_.u32(pattern.pieces.size());
      patterns_.u32(pattern.rule);
      pieces_.raw(pattern.pieces);
    }
  }

  void entries_and_rules() {
    const LoweredRule* rule = lowered_.rules.data();
    for (std::size_t i = 0; i < policy_.entries.size(); ++i) {
      const Entry& entry = policy_.entries[i];
      entries_.u32(lowered_.entry_pairs[i]);
      entries_.u32(rules_.size() / sizeof(blob::Rule));
      entries_.u64(entry.max_duration_secs);
      text(entries_, entry.description);
      for (const Command& command : entry.commands) {
        rules_.u32(rule->entry);
        rules_.u32(rule->pattern);
        rules_.u32(has_options(command) ? options_.size() / sizeof(Options) : kNone);
        if (has_options(command)) options(command);
        ++rule;
      }
    }
  }

  void options(const Command& c) {
    const auto env = env_items(c), writable = sorted(c.writable.value_or(std::vector<std::string>{})),
               allow = example_items(c.allow), deny = example_items(c.deny);
    options_.u32(option_flags(c));
    for (const auto* items : {&env, &writable, &allow, &deny}) options_.u32(items->size());
    options_.u32(items_.size() / sizeof(TextRef));
    for (const std::uint8_t b : c.sha256.value_or(Id{})) options_.u8(b);
    text(options_, c.exe);
    text(options_, c.reason);
    text(options_, c.cwd);
    for (const auto* items : {&env, &writable, &allow, &deny}) add_items(*items);
    const Limits& l = c.limits;
    for (const std::uint64_t number : {c.max_duration_secs, c.max_stdout_bytes, c.max_stderr_bytes, c.max_stdin_bytes,
                                       l.cpu_secs, l.memory_bytes, l.file_bytes, l.open_files, l.processes})
      options_.u64(number);
  }

  Section header() {
    const Exec& exec = policy_.exec;
    Section h;
    h.raw({kMagic, 8});
    h.raw({kPurpose, 8});
    h.u32(kFormatVersion);
    h.u32(exec.enabled ? kFlagEnabled : 0);
    h.u64(policy_.version.value_or(0));
    h.u64(policy_.not_before.value_or(0));
    h.u64(policy_.expires.value_or(0));
    h.u64(exec.max_stdout_bytes);
    h.u64(exec.max_stderr_bytes);
    h.u64(exec.max_stdin_bytes);
    h.u64(exec.max_duration_secs);
    h.u64(std::min(exec.warn_stdout_bytes, exec.max_stdout_bytes));
    h.u64(std::min(exec.warn_stderr_bytes, exec.max_stderr_bytes));
    h.u64(std::min(exec.warn_duration_secs, exec.max_duration_secs));
    h.u32(exec.max_concurrent_per_agent);
    h.u32(exec.max_concurrent_total);
    h.raw(header_texts_.bytes());
    h.u32(policy_.audience ? policy_.audience->size() : 0);
    h.u32(lowered_.pairs.size());
    h.u32(lowered_.shapes.size());
    h.u32(templates_.size() / sizeof(blob::Template));
    h.u32(patterns_.size() / sizeof(Pattern));
    h.u32(policy_.entries.size());
    h.u32(lowered_.rules.size());
    h.u32(options_.size() / sizeof(Options));
    h.u32(items_.size() / sizeof(TextRef));
    h.u32(pieces_.size());
    h.u32(texts_.size());
    return h;
  }

  const Policy& policy_;
  const Lowered& lowered_;
  Section header_texts_, pairs_, shapes_, templates_, patterns_, entries_, rules_, options_, items_, pieces_, texts_;
};

}  // namespace

std::vector<std::uint8_t> emit(const Policy& policy, const Lowered& lowered) { return Emitter(policy, lowered).run(); }

std::vector<std::uint8_t> emit(const Policy& policy) { return emit(policy, lower(policy)); }

}  // namespace x0x::policyc
