#include "policyc/cmd_keygen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "policyc/atomic_file.hpp"
#include "policyc/commands.hpp"
#include "policyc/user_error.hpp"

namespace x0x::policyc {

namespace {

void check_paths(const KeygenOptions& options) {
  if (std::filesystem::weakly_canonical(options.public_path) == std::filesystem::weakly_canonical(options.secret_path))
    throw UserError("the public and the secret key need two different files");
  if (options.force) return;
  std::error_code error;
  for (const std::string& path : {options.public_path, options.secret_path})
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
      throw UserError(fmt::format("`{}` exists already; a key that is overwritten is lost, so choose another name "
                                  "or add `--force`",
                                  path),
                      kExitRefused);
}

SecretBytes secret_file(const SecretKey& key, const KeygenOptions& options) {
  if (options.no_password) {
    const std::string comment = options.comment.empty() ? "minisign secret key without a password" : options.comment;
    return format_secret_key(key, comment, nullptr);
  }
  const std::string comment = options.comment.empty() ? "minisign encrypted secret key" : options.comment;
  const SecretBytes password = ask_new_password(options.password);
  return format_secret_key(key, comment, &password, options.cost);
}

// Both files or neither: a public key whose secret half could not be written is worse than none.
void write_pair(const KeygenOptions& options, const std::string& public_text, const SecretBytes& secret_text) {
  const Existing existing = options.force ? Existing::replace : Existing::keep;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(public_text.data());
  write_file_atomically(options.public_path, {bytes, public_text.size()}, 0644, existing);
  try {
    write_file_atomically(options.secret_path, secret_text.span(), 0600, existing);
  } catch (const UserError&) {
    unlink(options.public_path.c_str());
    throw;
  }
}

}  // namespace

int run_keygen(const KeygenOptions& options, std::ostream& out) {
  check_paths(options);
  forbid_core_dumps();
  const SecretKey key = generate_key();
  const std::string id = key_id(key.number);
  const std::string public_text = format_public_key(
      key.public_key(), options.comment.empty() ? fmt::format("minisign public key {}", id) : options.comment);
  write_pair(options, public_text, secret_file(key, options));
  out << fmt::format(
      "key {}\n"
      "  public  {}  (pin it: append this file to the nodes' trust file)\n"
      "  secret  {}  (keep it off the nodes{})\n",
      id, options.public_path, options.secret_path,
      options.no_password ? "; it has no password, whoever reads it can sign" : "");
  return kExitOk;
}

void add_keygen_command(CLI::App& app, std::function<int()>& run) {
  const auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = app.add_subcommand("keygen", "Make a key pair for signing tables, in minisign's own files");
  command->add_option("-p,--public", options->public_path, "Where the public key goes")->required()->type_name("FILE");
  command->add_option("-s,--secret", options->secret_path, "Where the secret key goes, readable by you only")
      ->required()
      ->type_name("FILE");
  CLI::Option* no_password =
      command->add_flag("--no-password", options->no_password, "Leave the secret key unprotected, for machines");
  add_password_option(*command, options->password)->excludes(no_password);
  command->add_option("--comment", options->comment, "First line of both files; nobody vouches for it")
      ->type_name("TEXT");
  command->add_flag("--force", options->force, "Overwrite existing key files");
  command->footer(
      "Examples:\n"
      "  x0x-policyc keygen -p alice.pub -s alice.key\n"
      "  x0x-policyc keygen -p ci.pub -s ci.key --password-fd 3 3< password.txt\n"
      "\n"
      "The stock `minisign` reads these files, and this program reads the ones `minisign -G` makes.\n"
      "Exit status: 0 done, 1 a file exists or the password is refused, 2 usage or I/O.");
  command->callback([options, &run] { run = [options] { return run_keygen(*options, std::cout); }; });
}

}  // namespace x0x::policyc
