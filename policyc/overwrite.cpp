#include "policyc/overwrite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "policyc/ephemeral.hpp"
#include "policyc/read_file.hpp"
#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

bool check_overwrite(const std::string& path, const BlobView& table) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // writing says what is wrong with it
  const std::vector<std::uint8_t> file = read_file(path, blob::kMaxFileBytes);
  if (file.empty()) return false;
  std::vector<std::uint8_t> storage;
  const Result<Envelope> envelope = open_envelope(UntrustedBytes{file});
  const Result<BlobView> old =
      envelope.ok() ? open_payload(envelope.value().payload, storage) : Result<BlobView>(envelope.fault());
  if (!old.ok())
    throw UserError(fmt::format("`{}` exists and is not a decision table; choose another name or add `--force`", path),
                    kExitRefused);
  if (old.value().header().policy_version > table.header().policy_version)
    throw UserError(fmt::format("`{}` holds version {}, and this would put version {} in its place; raise the "
                                "version or add `--force`",
                                path, old.value().header().policy_version, table.header().policy_version),
                    kExitRefused);
  return old.value().header().policy_version == table.header().policy_version &&
         !std::ranges::equal(old.value().payload(), table.payload());
}

}  // namespace x0x::policyc
