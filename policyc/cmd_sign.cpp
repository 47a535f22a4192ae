#include "policyc/cmd_sign.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "policyc/atomic_file.hpp"
#include "policyc/commands.hpp"
#include "policyc/ephemeral.hpp"
#include "policyc/hex.hpp"
#include "policyc/overwrite.hpp"
#include "policyc/read_file.hpp"
#include "policyc/read_table.hpp"
#include "policyc/signatures.hpp"
#include "policyc/text.hpp"
#include "policyc/user_error.hpp"
#include "schema/blob_format.hpp"

namespace x0x::policyc {

namespace {

constexpr std::size_t kMaxMinisigBytes = 16u << 10;  // minisign's comments may be long; ours are checked later

void check_options(const SignOptions& options) {
  if (options.key.empty() == options.minisig.empty())
    throw UserError("give either `--key SECRET` to sign, or `--minisig FILE` to attach a signature");
  if (!options.minisig.empty() && options.public_keys.empty())
    throw UserError(
        "`--minisig` needs `--public FILE`: a signature is attached only after it has been checked against "
        "its key, because nodes refuse a table on which a pinned key's signature does not match");
  if (options.minisig.empty() && !options.public_keys.empty())
    throw UserError("`--public` goes with `--minisig`; a secret key needs no second opinion");
  if (!options.minisig.empty() && !options.comment.empty())
    throw UserError("`--comment` cannot change the comment of a signature that is made already");
}

Signature attach(const SignOptions& options, Bytes payload) {
  const std::vector<std::uint8_t> text = read_file(options.minisig, kMaxMinisigBytes);
  Signature signature = parse_minisig(to_string(text), options.minisig);
  const std::vector<PublicKey> keys = load_public_keys(options.public_keys);
  const auto key = std::ranges::find(keys, signature.number, &PublicKey::number);
  const auto refuse = [&](const std::string& what) {
    throw UserError(fmt::format("`{}` {}", options.minisig, what), kExitRefused);
  };
  if (key == keys.end())
    refuse(fmt::format("was made by key {}, which is not among the public keys given", key_id(signature.number)));
  switch (check_signature(payload, signature, *key)) {
    case SignatureCheck::good:
      return signature;
    case SignatureCheck::bad_comment:
      refuse("has a trusted comment that its key has not signed");
      break;
    default:
      refuse(
          fmt::format("does not sign the payload of `{}`; `verify --detach` writes the file to sign", options.table));
  }
  return signature;
}

Signature make_signature(const SignOptions& options, const BlobView& table) {
  const std::string comment = options.comment.empty() ? default_trusted_comment(table) : options.comment;
  check_comment(comment, blob::kMaxTrustedCommentBytes);  // before anybody is asked for a password
  return sign_payload(table.payload(), load_secret_key(options.key, options.password), comment);
}

// A table that is signed in place stays as readable as it was.
mode_t mode_for(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0644;
}

}  // namespace

int run_sign(const SignOptions& options, std::ostream& out) {
  check_options(options);
  SignedTable table = take_apart(read_file(options.table, blob::kMaxFileBytes), options.table);
  std::vector<std::uint8_t> storage;
  const Result<BlobView> opened = open_payload(table.payload, storage);
  if (!opened.ok())
    throw UserError(fmt::format("{}: {}: {}", options.table, fault_name(opened.fault()), fault_message(opened.fault())),
                    kExitRefused);
  const BlobView& view = opened.value();
  const std::string target = options.output.empty() ? options.table : options.output;
  const bool contradicts = !options.force && check_overwrite(target, view);

  Signature signature = options.key.empty() ? attach(options, table.payload) : make_signature(options, view);
  const std::string id = key_id(signature.number);
  const std::size_t before = table.signatures.size();
  add_signature(table.signatures, std::move(signature));
  write_file_atomically(target, assemble(table.payload, table.signatures), mode_for(target));

  out << fmt::format("{}: {} by key {}, {} in all\n", escape(target),
                     table.signatures.size() > before ? "signed" : "signature replaced", id, table.signatures.size());
  out << fmt::format(
      "  policy  {} version {}\n  digest  {}\n",
      view.text(view.header().name).present() ? escape(to_string(view.text(view.header().name).bytes)) : "(no name)",
      view.header().policy_version, to_hex(digest_of(table.payload).bytes));
  if (contradicts) out << "  note    the same version had other content here; nodes that loaded it refuse this one\n";
  return kExitOk;
}

void add_sign_command(CLI::App& app, std::function<int()>& run) {
  const auto options = std::make_shared<SignOptions>();
  CLI::App* command = app.add_subcommand("sign", "Add a signature to a table");
  command->add_option("TABLE", options->table, "The table, a .x0xp file")->required();
  command->add_option("--key", options->key, "Sign with this secret key, a minisign file")->type_name("SECRET");
  command->add_option("--minisig", options->minisig, "Attach this signature, made by `minisign -S` over the payload")
      ->type_name("FILE");
  command
      ->add_option("--public", options->public_keys,
                   "Public keys one of which made the signature: minisign files or a trust file")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "Write here; without it the table itself is replaced")
      ->type_name("OUT");
  add_password_option(*command, options->password);
  command->add_option("--comment", options->comment, "Trusted comment, signed too; without it: name, version, digest")
      ->type_name("TEXT");
  command->add_flag("--force", options->force, "Overwrite a table of a higher version, or a file that is no table");
  command->footer(
      "Examples:\n"
      "  x0x-policyc sign policy.x0xp --key alice.key\n"
      "\n"
      "  With a key that only the stock minisign may touch:\n"
      "  x0x-policyc verify policy.x0xp --trust trust --detach policy\n"
      "  minisign -S -s bob.key -m policy.payload -x bob.minisig\n"
      "  x0x-policyc sign policy.x0xp --minisig bob.minisig --public bob.pub\n"
      "\n"
      "A key signs a table once; signing again replaces its signature.\n"
      "Exit status: 0 done, 1 refused, 2 usage or I/O.");
  command->callback([options, &run] { run = [options] { return run_sign(*options, std::cout); }; });
}

}  // namespace x0x::policyc
