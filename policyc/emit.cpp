#include "policyc/emit.hpp"

#include <algorithm>
#include <bit>
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

Bytes as_bytes(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

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

// How many slots without an empty one between them this one is among, going round at the end.
std::size_t row_around(const std::vector<blob::Slot>& slots, std::size_t at) {
  const std::size_t mask = slots.size() - 1;
  std::size_t row = 1;
  for (std::size_t i = at + 1; slots[i & mask].number != 0; ++i) ++row;
  for (std::size_t i = at - 1; slots[i & mask].number != 0; --i) ++row;
  return row;
}

class Emitter {
 public:
  Emitter(const Policy& policy, const Lowered& lowered) : policy_(policy), lowered_(lowered) {}

  std::vector<std::uint8_t> run() {
    // Texts are numbered in the order the reader meets them: header, entries, options.
    header_texts();
    pairs_and_shapes();
    entries();
    rules_and_options();
    slots();
    Section payload = header();
    for (const Section* s :
         {&pairs_, &shapes_, &templates_, &entries_, &rules_, &options_, &items_, &slots_, &pieces_, &texts_})
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
      pairs_.raw(pair.key);
      pairs_.u32(pair.first_shape);
      pairs_.u32(pair.shape_count);
    }
    for (std::size_t i = 0; i < lowered_.shapes.size(); ++i) {
      const LoweredShape& shape = lowered_.shapes[i];
      shapes_.u32(shape.argc);
      shapes_.u32(lowered_.first_rules[i]);
      shapes_.u32(templates_.size() / sizeof(blob::Template));
      shapes_.u32(shape.templates.size());
      for (const LoweredTemplate& t : shape.templates) {
        templates_.u32(t.piece_bytes);
        templates_.u32(t.token);
      }
    }
  }

  void entries() {
    std::uint32_t first_rule = 0;
    for (std::size_t i = 0; i < policy_.entries.size(); ++i) {
      const Entry& entry = policy_.entries[i];
      entries_.u32(lowered_.entry_pairs[i]);
      entries_.u32(first_rule);
      entries_.u64(entry.max_duration_secs);
      text(entries_, entry.description);
      first_rule += static_cast<std::uint32_t>(entry.commands.size());
    }
  }

  void rules_and_options() {
    const LoweredRule* rule = lowered_.rules.data();
    for (const Entry& entry : policy_.entries) {
      for (const Command& command : entry.commands) {
        rules_.u32(rule->entry);
        rules_.u32(rule->shape);
        rules_.u32(pieces_.size());
        rules_.u32(has_options(command) ? options_.size() / sizeof(Options) : kNone);
        pieces_.raw(rule->pieces);
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

  // The pieces in runs, as a request that matches holds them, the last first: a template ends one.
  std::uint64_t hash_of(const LoweredRule& rule) const {
    std::vector<Bytes> runs;
    std::size_t from = 0, at = 0;
    std::uint32_t token = 0;
    for (const LoweredTemplate& t : lowered_.shapes[rule.shape].templates) {
      for (; token < t.token; ++token) at = rule.pieces.find('\0', at) + 1;
      runs.push_back(as_bytes(rule.pieces).subspan(from, at + t.piece_bytes - from));
      at = from = at + t.piece_bytes + 1;
      ++token;
    }
    std::uint64_t hash = rule.shape;
    if (from < rule.pieces.size()) hash = hash_bytes(hash, as_bytes(rule.pieces).subspan(from));
    for (auto run = runs.rbegin(); run != runs.rend(); ++run)
      if (!run->empty()) hash = hash_bytes(hash, *run);
    return hash;
  }

  bool equal(const LoweredRule& a, const LoweredRule& b) const { return a.shape == b.shape && a.pieces == b.pieces; }

  void slots() {
    const std::size_t pairs = lowered_.pairs.size(), all = pairs + lowered_.rules.size();
    std::vector<blob::Slot> slots(std::bit_ceil(all * 2));
    for (std::uint32_t i = 0; i < all; ++i) {
      const std::uint64_t hash =
          i < pairs ? hash_bytes(kHashPair, as_bytes(lowered_.pairs[i].key)) : hash_of(lowered_.rules[i - pairs]);
      const auto tag = static_cast<std::uint32_t>(hash >> 32);
      std::size_t slot = hash & (slots.size() - 1);
      bool there = false;
      for (; slots[slot].number != 0 && !there; slot = (slot + 1) & (slots.size() - 1))
        there = i >= pairs && slots[slot].tag == tag && slots[slot].number > pairs &&
                equal(lowered_.rules[slots[slot].number - 1 - pairs], lowered_.rules[i - pairs]);
      if (there) continue;  // the first of equal rules is the one that matches
      slots[slot] = {tag, i + 1};
      if (row_around(slots, slot) >= kMaxProbes) {
        const auto rule = static_cast<std::uint32_t>(i - pairs);
        throw i < pairs ? CrowdedIndex(i, kNone) : CrowdedIndex(kNone, rule);
      }
    }
    for (const blob::Slot& slot : slots) {
      slots_.u32(slot.tag);
      slots_.u32(slot.number);
    }
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
    h.u32(policy_.entries.size());
    h.u32(lowered_.rules.size());
    h.u32(options_.size() / sizeof(Options));
    h.u32(items_.size() / sizeof(TextRef));
    h.u32(slots_.size() / sizeof(blob::Slot));
    h.u32(pieces_.size());
    h.u32(texts_.size());
    return h;
  }

  const Policy& policy_;
  const Lowered& lowered_;
  Section header_texts_, pairs_, shapes_, templates_, entries_, rules_, options_, items_, slots_, pieces_, texts_;
};

}  // namespace

std::vector<std::uint8_t> emit(const Policy& policy, const Lowered& lowered) { return Emitter(policy, lowered).run(); }

std::vector<std::uint8_t> emit(const Policy& policy) { return emit(policy, lower(policy)); }

}  // namespace x0x::policyc
