#include "policyc/cmd_verify.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "policyc/atomic_file.hpp"
#include "policyc/commands.hpp"
#include "policyc/read_file.hpp"
#include "policyc/text.hpp"
#include "policyc/timestamp.hpp"
#include "policyc/user_error.hpp"
#include "policyc/verify_report.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

TrustedKeys load_trust(const std::string& path) {
  const Result<TrustedKeys> trusted = parse_trust(read_file(path, kMaxTrustFileBytes + 1));
  if (!trusted.ok())
    throw UserError(
        fmt::format("{}: {}: {}", escape(path), fault_name(trusted.fault()), fault_message(trusted.fault())));
  return trusted.value();
}

// Payload and signatures as files that `minisign -V` accepts. Gives their names.
std::vector<std::string> detach(const VerifyReport& report, const std::string& base) {
  const std::string payload_path = base + ".payload";
  std::vector<std::pair<std::string, std::string>> signature_files;
  for (const Signer& signer : report.signers) {
    const std::string path = report.signers.size() == 1
                                 ? payload_path + ".minisig"
                                 : fmt::format("{}.{}.minisig", payload_path, key_id(signer.signature.number));
    signature_files.emplace_back(path, format_minisig(signer.signature));
  }
  std::vector<std::string> written{payload_path};
  write_file_atomically(payload_path, report.table->payload());
  for (const auto& [path, text] : signature_files) {
    write_file_atomically(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    written.push_back(path);
  }
  return written;
}

}  // namespace

int run_verify(const VerifyOptions& options, std::ostream& out, std::ostream& err) {
  const TrustedKeys trusted = load_trust(options.trust);
  const std::vector<PublicKey> known = load_public_keys(options.public_keys);
  // One byte more than a table may have, so that the enforcer's own check refuses what is too large.
  const std::vector<std::uint8_t> file = read_file(options.table, blob::kMaxFileBytes + 1);
  const std::uint64_t now = options.now ? *options.now : now_secs();
  const VerifyReport report = make_verify_report(options.table, file, trusted, known, now);

  std::vector<std::string> written;
  if (!report.refusal && !options.detach.empty()) written = detach(report, options.detach);
  if (options.json) {
    nlohmann::ordered_json json = to_json(report);
    if (!written.empty()) json["detached"] = written;
    out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else if (!report.refusal) {
    out << to_human(report);
    for (const std::string& path : written) out << fmt::format("  {:<9} {}\n", "wrote", escape(path));
  }
  if (!report.refusal) return kExitOk;
  err << refusal_line(report) << '\n';
  return kExitRefused;
}

void add_verify_command(CLI::App& app, std::function<int()>& run) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Check a table the way a node does, and say who signed it and for how long");
  command->add_option("TABLE", options->table, "The table, a .x0xp file")->required();
  command
      ->add_option("--trust", options->trust,
                   "The nodes' trust file: minisign public keys, and `threshold N` if more than one must sign")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--public", options->public_keys,
                   "Further public keys to check signatures with; they do not count towards the threshold")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command
      ->add_option("--detach", options->detach,
                   "Write BASE.payload and its signatures as .minisig files for the stock minisign")
      ->type_name("BASE");
  add_format_option(*command, options->json);
  command->footer(
      "Examples:\n"
      "  cat alice.pub bob.pub > trust; echo 'threshold 2' >> trust\n"
      "  x0x-policyc verify policy.x0xp --trust trust\n"
      "  x0x-policyc verify policy.x0xp --trust trust --detach policy\n"
      "  minisign -V -p alice.pub -m policy.payload -x policy.payload.KEYID.minisig\n"
      "\n"
      "With one signature the file is policy.payload.minisig.\n"
      "Exit status: 0 a node would load it, 1 refused, 2 usage or I/O.");
  command->callback([options, &run] { run = [options] { return run_verify(*options, std::cout, std::cerr); }; });
}

}  // namespace x0x::policyc
