#include "policyc/load_policy.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "policyc/cmd_check.hpp"
#include "policyc/ephemeral.hpp"
#include "policyc/parse.hpp"
#include "policyc/read_file.hpp"
#include "policyc/read_table.hpp"
#include "policyc/render.hpp"
#include "policyc/signatures.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

LoadedPolicy load_table(const std::string& path, Bytes file) {
  LoadedPolicy loaded;
  loaded.name = path;
  loaded.compiled.payload = take_apart(file, path).payload;
  const Result<BlobView> opened = open_payload(loaded.compiled.payload, loaded.compiled.storage);
  if (!opened.ok())
    throw UserError(fmt::format("{}: {}: {}", path, fault_name(opened.fault()), fault_message(opened.fault())),
                    kExitRefused);
  loaded.compiled.table = opened.value();
  loaded.policy = read_table(loaded.compiled.table);
  return loaded;
}

LoadedPolicy load_toml(const Source& source) {
  Diagnostics diagnostics;
  std::optional<Policy> policy = parse_policy(source, diagnostics);
  std::optional<CompiledPolicy> compiled;
  if (policy) compiled = compile_policy(*policy, diagnostics);
  if (!compiled) {
    fmt::print(stderr, "{}", render_human(source, diagnostics, wants_colour(STDERR_FILENO)));
    throw UserError(fmt::format("{}: not a valid policy; `x0x-policyc check` lists what is wrong", source.name));
  }
  return {std::move(*policy), std::move(*compiled), source.name};
}

}  // namespace

// Either end will do: a table that was cut off is not to be taken for a text.
bool looks_like_table(Bytes file) {
  return file.size() >= 8 && (std::memcmp(file.data(), blob::kMagic, 8) == 0 ||
                              std::memcmp(file.data() + file.size() - 8, blob::kTrailerMagic, 8) == 0);
}

LoadedPolicy load_policy(const std::string& path) {
  std::string error;
  if (path == "-") {
    const std::optional<Source> source = load_source(path, error);
    if (!source) throw UserError(error);
    return load_toml(*source);
  }
  // Read once, so that a pipe will do.
  const std::vector<std::uint8_t> file = read_file(path, blob::kMaxFileBytes);
  if (looks_like_table(file)) return load_table(path, file);
  if (file.size() > kMaxSourceBytes)
    throw UserError(fmt::format("{}: too large for a policy: {} MiB is the most", path, kMaxSourceBytes >> 20));
  return load_toml(make_source(path, std::string(file.begin(), file.end())));
}

RuleName rule_name(const LoadedPolicy& loaded, std::uint32_t rule) {
  const Rule record = loaded.compiled.table.rule(rule);
  const std::uint32_t command = rule - loaded.compiled.table.entry(record.entry).first_rule;
  return {record.entry, command, loaded.policy.entries[record.entry].commands[command].span.line};
}

}  // namespace x0x::policyc
