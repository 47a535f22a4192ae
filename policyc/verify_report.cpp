#include "policyc/verify_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policyc/hex.hpp"
#include "policyc/read_table.hpp"
#include "policyc/text.hpp"
#include "policyc/timestamp.hpp"

namespace x0x::policyc {

namespace {

std::vector<PublicKey> keys_of(const TrustedKeys& trusted) {
  std::vector<PublicKey> keys(trusted.count);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::ranges::copy(trusted.keys[i].number, keys[i].number.begin());
    std::ranges::copy(trusted.keys[i].key, keys[i].key.begin());
  }
  return keys;
}

Signer judge(Signature signature, Bytes payload, const std::vector<PublicKey>& pinned,
             const std::vector<PublicKey>& known) {
  Signer signer{std::move(signature), Standing::unknown, SignatureCheck::wrong_key};
  const auto look_among = [&](const std::vector<PublicKey>& keys, Standing standing) {
    const auto key = std::ranges::find(keys, signer.signature.number, &PublicKey::number);
    if (signer.standing != Standing::unknown || key == keys.end()) return;
    signer.standing = standing;
    signer.check = check_signature(payload, signer.signature, *key);
  };
  look_among(pinned, Standing::pinned);
  look_among(known, Standing::known);
  return signer;
}

std::uint32_t count_votes(const std::vector<Signer>& signers) {
  std::vector<KeyNumber> voters;
  for (const Signer& signer : signers)
    if (signer.standing == Standing::pinned && signer.check != SignatureCheck::bad_signature)
      voters.push_back(signer.signature.number);
  std::ranges::sort(voters);
  return static_cast<std::uint32_t>(std::unique(voters.begin(), voters.end()) - voters.begin());
}

// The enforcer's message, and what helps a person beyond it.
Refusal explain(Fault fault, const VerifyReport& report) {
  std::string message = fault_message(fault);
  std::vector<std::string> ids;
  for (const Signer& signer : report.signers)
    if (fault == Fault::untrusted_key || signer.check == SignatureCheck::bad_signature)
      ids.push_back(key_id(signer.signature.number));
  if (fault == Fault::threshold_not_met)
    message += fmt::format(" ({} of {})", report.votes, report.threshold);
  else if ((fault == Fault::untrusted_key || fault == Fault::bad_signature) && !ids.empty())
    message += fmt::format(" (signed by {})", fmt::join(ids, ", "));
  return {fault_name(fault), message};
}

std::optional<Refusal> find_bad_signer(const VerifyReport& report) {
  for (const Signer& signer : report.signers) {
    const std::string id = key_id(signer.signature.number);
    if (signer.check == SignatureCheck::bad_signature)
      return Refusal{"bad_signature", fmt::format("the signature by key {} does not match the table", id)};
    if (signer.check == SignatureCheck::bad_comment)
      return Refusal{"bad_comment", fmt::format("the trusted comment of key {} is not signed by that key", id)};
  }
  return std::nullopt;
}

const char* name_of(Standing standing) {
  return standing == Standing::pinned ? "pinned" : standing == Standing::known ? "known" : "unknown";
}

const char* validity_of(const BlobView& table, std::uint64_t now) {
  if (table.header().not_before != 0 && now < table.header().not_before) return "not_yet_valid";
  if (table.header().expires != 0 && now >= table.header().expires) return "expired";
  return "valid";
}

std::string describe_window(const BlobView& table, std::uint64_t now) {
  std::string window =
      table.header().not_before != 0 ? fmt::format("from {} ", format_utc(table.header().not_before)) : "";
  window +=
      table.header().expires != 0 ? fmt::format("until {}", format_utc(table.header().expires)) : "without expiry";
  const std::string_view validity = validity_of(table, now);
  if (validity == "expired") window += "  EXPIRED: nodes refuse every request under it";
  if (validity == "not_yet_valid") window += "  NOT YET VALID";
  return window;
}

std::vector<std::string> audience_of(const BlobView& table) {
  std::vector<std::string> audience;
  for (std::uint32_t i = 0; i < table.header().audience_count; ++i) audience.push_back(to_string(table.item(i).bytes));
  return audience;
}

nlohmann::ordered_json optional_time(std::uint64_t seconds) {
  return seconds == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(format_utc(seconds));
}

nlohmann::ordered_json policy_json(const BlobView& table, std::uint64_t now) {
  nlohmann::ordered_json policy;
  policy["name"] = nullptr;
  if (table.text(table.header().name).present()) policy["name"] = to_string(table.text(table.header().name).bytes);
  policy["version"] = table.header().policy_version;
  policy["digest"] = to_hex(digest_of(table.payload()).bytes);
  policy["not_before"] = optional_time(table.header().not_before);
  policy["expires"] = optional_time(table.header().expires);
  policy["validity"] = validity_of(table, now);
  policy["audience"] = nullptr;
  if (table.header().audience_count != 0) policy["audience"] = audience_of(table);
  policy["enabled"] = table.enabled();
  policy["entries"] = table.header().entry_count;
  policy["commands"] = table.header().rule_count;
  return policy;
}

}  // namespace

VerifyReport make_verify_report(const std::string& table_path, Bytes file, const TrustedKeys& trusted,
                                const std::vector<PublicKey>& known, std::uint64_t now) {
  VerifyReport report;
  report.table_path = table_path;
  report.pinned_keys = trusted.count;
  report.threshold = trusted.threshold;
  report.now = now;
  if (open_envelope(UntrustedBytes{file}).ok()) {
    SignedTable parts = take_apart(file, table_path);
    for (Signature& signature : parts.signatures)
      report.signers.push_back(judge(std::move(signature), parts.payload, keys_of(trusted), known));
    report.votes = count_votes(report.signers);
  }
  const Result<VerifiedBytes> verified = verify(UntrustedBytes{file}, trusted);
  const Result<BlobView> opened = verified.ok() ? BlobView::open(verified.value()) : Result<BlobView>(verified.fault());
  report.refusal = opened.ok() ? find_bad_signer(report) : explain(opened.fault(), report);
  if (!report.refusal) report.table = opened.value();
  return report;
}

std::string refusal_line(const VerifyReport& report) {
  return fmt::format("{}: {}: {}", escape(report.table_path), report.refusal->name, report.refusal->message);
}

std::string to_human(const VerifyReport& report) {
  const BlobView& table = *report.table;
  const std::vector<std::string> audience = audience_of(table);
  std::string text = fmt::format("{}: verified\n", escape(report.table_path));
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<9} {}\n", label, value);
  };
  line("policy",
       fmt::format("{} version {}",
                   table.text(table.header().name).present() ? escape(to_string(table.text(table.header().name).bytes))
                                                             : "(no name)",
                   table.header().policy_version));
  line("digest", to_hex(digest_of(table.payload()).bytes));
  line("valid", describe_window(table, report.now));
  line("audience", audience.empty() ? "any node" : escape(fmt::format("{}", fmt::join(audience, ", "))));
  line("holds", fmt::format("{}, {}{}", count_of(table.header().entry_count, "entry", "entries"),
                            count_of(table.header().rule_count, "command", "commands"),
                            table.enabled() ? "" : "  DISABLED: nodes refuse every request under it"));
  line("signed", fmt::format("by {} of {}, threshold {}", report.votes,
                             count_of(report.pinned_keys, "pinned key", "pinned keys"), report.threshold));
  for (const Signer& signer : report.signers) {
    const bool checked = signer.standing != Standing::unknown;
    text += fmt::format("    {}  {:<7}  {}{}\n", key_id(signer.signature.number), name_of(signer.standing),
                        checked ? "" : "unchecked comment: ", escape(signer.signature.trusted_comment));
  }
  return text;
}

nlohmann::ordered_json to_json(const VerifyReport& report) {
  nlohmann::ordered_json json;
  json["table"] = report.table_path;
  json["verified"] = !report.refusal;
  json["fault"] = nullptr;
  json["message"] = nullptr;
  if (report.refusal) {
    json["fault"] = report.refusal->name;
    json["message"] = report.refusal->message;
  }
  json["policy"] = nullptr;
  if (report.table) json["policy"] = policy_json(*report.table, report.now);
  json["threshold"] = report.threshold;
  json["pinned_keys"] = report.pinned_keys;
  json["pinned_signatures"] = report.votes;
  json["signatures"] = nlohmann::ordered_json::array();
  for (const Signer& signer : report.signers) {
    nlohmann::ordered_json entry;
    entry["key_id"] = key_id(signer.signature.number);
    entry["standing"] = name_of(signer.standing);
    entry["signature_ok"] = nullptr;  // and the next: null when there was no key to check them with
    entry["comment_ok"] = nullptr;
    if (signer.standing != Standing::unknown) {
      entry["signature_ok"] = signer.check != SignatureCheck::bad_signature;
      if (signer.check != SignatureCheck::bad_signature) entry["comment_ok"] = signer.check == SignatureCheck::good;
    }
    entry["trusted_comment"] = signer.signature.trusted_comment;
    json["signatures"].push_back(entry);
  }
  return json;
}

}  // namespace x0x::policyc
