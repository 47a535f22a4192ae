#include "policyc/emit.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string_view>

#include "enforcer/blob_view.hpp"
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
  Emitter(const Policy& policy, const Trie& trie) : policy_(policy), trie_(trie) {}

  std::vector<std::uint8_t> run() {
    // Texts are numbered in the order the reader meets them: header, entries, options, then lists.
    header_texts();
    entries();
    rules_and_options();
    items();
    positions();
    slots();
    Section payload = header();
    for (const Section* s : {&entries_, &rules_, &options_, &items_, &positions_, &slots_, &labels_, &texts_})
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

  std::uint32_t add_items(const std::vector<std::string>& items) {
    item_texts_.insert(item_texts_.end(), items.begin(), items.end());
    return static_cast<std::uint32_t>(items.size());
  }

  void entries() {
    std::uint32_t first_rule = 0;
    for (std::size_t i = 0; i < policy_.entries.size(); ++i) {
      const Entry& entry = policy_.entries[i];
      entries_.u32(trie_.entry_pairs[i]);
      entries_.u32(first_rule);
      entries_.u64(entry.max_duration_secs);
      text(entries_, entry.description);
      first_rule += static_cast<std::uint32_t>(entry.commands.size());
    }
  }

  void rules_and_options() {
    std::uint32_t rule = 0;
    for (std::uint32_t entry = 0; entry < policy_.entries.size(); ++entry) {
      for (const Command& command : policy_.entries[entry].commands) {
        rules_.u32(entry);
        rules_.u32(trie_.rule_positions[rule++]);
        rules_.u32(has_options(command) ? option_count_++ : kNone);
        if (has_options(command)) options(command);
      }
    }
  }

  void options(const Command& c) {
    const std::uint64_t first_item = item_texts_.size();
    options_.u32(option_flags(c));
    options_.u32(add_items(env_items(c)));
    options_.u32(add_items(sorted(c.writable.value_or(std::vector<std::string>{}))));
    options_.u32(add_items(example_items(c.allow)));
    options_.u32(add_items(example_items(c.deny)));
    options_.u32(first_item);
    for (const std::uint8_t b : c.sha256.value_or(Id{})) options_.u8(b);
    text(options_, c.exe);
    text(options_, c.reason);
    text(options_, c.cwd);
    const Limits& l = c.limits;
    for (const std::uint64_t number : {c.max_duration_secs, c.max_stdout_bytes, c.max_stderr_bytes, c.max_stdin_bytes,
                                       l.cpu_secs, l.memory_bytes, l.file_bytes, l.open_files, l.processes})
      options_.u64(number);
  }

  void items() {
    for (const std::string& item : item_texts_) text(items_, std::string_view(item));
  }

  void positions() {
    for (const TriePosition& p : trie_.positions) {
      positions_.u32(p.parent);
      positions_.u32(labels_.size());
      positions_.u32(p.label.size());
      positions_.u32(p.rule);
      positions_.u32(p.pair);
      positions_.u8(p.kind);
      positions_.u8(p.templates);
      positions_.u8(static_cast<std::uint8_t>(p.width));
      positions_.u8(0);
      labels_.raw(p.label);
      labels_.u8(0);
    }
  }

  void slots() {
    const auto count = static_cast<std::uint32_t>(std::bit_ceil((trie_.positions.size() - 1) * 2));
    std::vector<std::uint32_t> slots(count);
    for (std::uint32_t i = 1; i < trie_.positions.size(); ++i) {
      const TriePosition& p = trie_.positions[i];
      const Bytes label(reinterpret_cast<const std::uint8_t*>(p.label.data()), p.label.size());
      std::uint32_t slot = home_slot(p.parent, p.kind, hash_label(label), count - 1);
      std::uint32_t probes = 1;
      for (; slots[slot] != 0; slot = (slot + 1) & (count - 1)) ++probes;
      if (probes > kMaxProbes) throw std::runtime_error("the table's index is too crowded; change any one token");
      slots[slot] = i;
    }
    for (const std::uint32_t slot : slots) slots_.u32(slot);
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
    h.u32(policy_.entries.size());
    h.u32(trie_.rule_positions.size());
    h.u32(option_count_);
    h.u32(item_texts_.size());
    h.u32(trie_.positions.size());
    h.u32(slots_.size() / kSlotBytes);
    h.u32(labels_.size());
    h.u32(texts_.size());
    h.u32(0);
    return h;
  }

  const Policy& policy_;
  const Trie& trie_;
  Section header_texts_, entries_, rules_, options_, items_, positions_, slots_, labels_, texts_;
  std::vector<std::string> item_texts_;
  std::uint32_t option_count_ = 0;
};

}  // namespace

std::vector<std::uint8_t> emit(const Policy& policy, const Trie& trie) { return Emitter(policy, trie).run(); }

std::vector<std::uint8_t> emit(const Policy& policy) { return emit(policy, lower(policy)); }

}  // namespace x0x::policyc
