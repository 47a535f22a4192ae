// What can be said about a table and its signatures, gathered with the enforcer's own verify() and open().
//
// It is never milder than a node. It is stricter in one place: a node needs no comments and does not check
// them, but a person reads them, so a comment that its key has not signed is a refusal here.
// tests/policyc/verify_cli_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "enforcer/blob_view.hpp"
#include "policyc/signatures.hpp"

namespace x0x::policyc {

enum class Standing { pinned, known, unknown };  // in the trust file; given beside it; never heard of

struct Signer {
  Signature signature;
  Standing standing = Standing::unknown;
  SignatureCheck check = SignatureCheck::wrong_key;  // stays so for an unknown key: nothing was checked
};

struct Refusal {
  std::string name, message;
};

struct VerifyReport {
  std::string table_path;
  std::uint32_t pinned_keys = 0, threshold = 0;
  std::uint32_t votes = 0;  // pinned keys that have signed
  std::vector<Signer> signers;
  std::optional<Refusal> refusal;
  std::optional<BlobView> table;  // only without a refusal
  std::uint64_t now = 0;          // what the validity window is compared with
};

// The report's table points into `file`.
VerifyReport make_verify_report(const std::string& table_path, Bytes file, const TrustedKeys& trusted,
                                const std::vector<PublicKey>& known, std::uint64_t now);

// `table.x0xp: threshold_not_met: too few pinned keys have signed the table (1 of 2)`
std::string refusal_line(const VerifyReport& report);

std::string to_human(const VerifyReport& report);
nlohmann::ordered_json to_json(const VerifyReport& report);

}  // namespace x0x::policyc
