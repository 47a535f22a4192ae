#include "policyc/inspect.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "policyc/explain.hpp"
#include "policyc/hex.hpp"
#include "policyc/policy_json.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

using Json = nlohmann::ordered_json;

Json table_json(const BlobView& table) {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < table.header().pair_count; ++i) most = std::max(most, table.pairs().at(i).shape_count);
  return {{"format_version", blob::kFormatVersion}, {"payload_bytes", table.payload().size()},
          {"pairs", table.header().pair_count},     {"entries", table.header().entry_count},
          {"rules", table.header().rule_count},     {"shapes", table.header().shape_count},
          {"max_shapes_of_a_pair", most},           {"patterns", table.header().pattern_count}};
}

std::string lines(const Json& json, const std::string& indent, const std::vector<std::string>& without) {
  std::string text;
  for (const auto& [key, value] : json.items())
    if (std::find(without.begin(), without.end(), key) == without.end())
      text += fmt::format("{}{} = {}\n", indent, key, escape(value.dump()));
  return text;
}

}  // namespace

std::string inspect_human(const LoadedPolicy& loaded, const std::vector<Signature>& signatures) {
  const Json json = policy_json(loaded.policy);
  std::string text = fmt::format("digest {}\n", to_hex(digest_of(loaded.compiled.payload).bytes));
  for (const Signature& signature : signatures)
    text += fmt::format("signature by key {}, comment {}\n", key_id(signature.number),
                        quote(signature.trusted_comment, 255));
  text += "\ntable\n" + lines(table_json(loaded.compiled.table), "  ", {});
  text += "\npolicy\n" + lines(json["policy"], "  ", {});
  text += "\nexec\n" + lines(json["exec"], "  ", {"allow"});
  for (std::size_t e = 0; e < loaded.policy.entries.size(); ++e) {
    const Json& entry = json["exec"]["allow"][e];
    text += fmt::format("\nexec.allow[{}]\n", e) + lines(entry, "  ", {"commands"});
    for (std::size_t c = 0; c < entry["commands"].size(); ++c)
      text += fmt::format("  commands[{}]  {}\n", c, show_argv(loaded.policy.entries[e].commands[c].argv)) +
              lines(entry["commands"][c], "    ", {"argv"});
  }
  return text;
}

std::string inspect_json(const LoadedPolicy& loaded, const std::vector<Signature>& signatures) {
  Json json = {{"digest", to_hex(digest_of(loaded.compiled.payload).bytes)}, {"signatures", Json::array()}};
  for (const Signature& signature : signatures)
    json["signatures"].push_back({{"key", key_id(signature.number)},
                                  {"signature", to_hex(signature.signature)},
                                  {"global_signature", to_hex(signature.global_signature)},
                                  {"trusted_comment", signature.trusted_comment}});
  json["table"] = table_json(loaded.compiled.table);
  json.update(policy_json(loaded.policy));
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace x0x::policyc
