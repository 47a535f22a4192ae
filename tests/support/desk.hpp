// A place to try keygen, sign and verify: a table, two authors, a trust file, and the stock minisign.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/cmd_keygen.hpp"
#include "policyc/cmd_sign.hpp"
#include "policyc/cmd_verify.hpp"
#include "policyc/signatures.hpp"
#include "policyc/user_error.hpp"
#include "tests/support/sample_payload.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// What a command said, and how it ended.
struct Said {
  std::string out, err;
  int code = -1;
};

template <class Run>
Said listen(Run run) {
  std::ostringstream out, err;
  try {
    const int code = run(out, err);
    return {out.str(), err.str(), code};
  } catch (const UserError& error) {
    return {out.str(), error.what(), error.exit_code};
  }
}

// A place with a table in it and two authors.
struct Desk {
  Scratch scratch;
  std::string table = scratch.path("edge.x0xp");

  Desk() {
    keygen("alice");
    keygen("bob");
    scratch.put("edge.x0xp", sign_table(sample_payload(), key("alice"), ""));
    trust("alice", "bob", 1);
  }

  Said keygen(const std::string& name, bool force = false) const {
    KeygenOptions options{.public_path = scratch.path(name + ".pub"),
                          .secret_path = scratch.path(name + ".key"),
                          .comment = "",
                          .no_password = true,
                          .password = {},
                          .cost = {},
                          .force = force};
    return listen([&](std::ostream& out, std::ostream&) { return run_keygen(options, out); });
  }
  SecretKey key(const std::string& name) const {
    return load_secret_key(scratch.path(name + ".key"), PasswordSource{});
  }
  std::string id(const std::string& name) const { return key_id(key(name).number); }
  void trust(const std::string& first, const std::string& second, int threshold) const {
    scratch.put("trust", scratch.text(first + ".pub") + scratch.text(second + ".pub") + "threshold " +
                             std::to_string(threshold) + "\n");
  }
  SignOptions sign_options() const {
    SignOptions options;
    options.table = table;
    return options;
  }
  Said sign(const SignOptions& options) const {
    return listen([&](std::ostream& out, std::ostream&) { return run_sign(options, out); });
  }
  Said sign_with(const std::string& name, const std::string& comment = "") const {
    SignOptions options = sign_options();
    options.key = scratch.path(name + ".key");
    options.comment = comment;
    return sign(options);
  }
  Said attach(const std::string& minisig, const std::string& public_key) const {
    SignOptions options = sign_options();
    options.minisig = scratch.path(minisig);
    options.public_keys = {scratch.path(public_key)};
    return sign(options);
  }
  VerifyOptions verify_options() const {
    VerifyOptions options;
    options.table = table;
    options.trust = scratch.path("trust");
    return options;
  }
  Said verify(const VerifyOptions& options) const {
    return listen([&](std::ostream& out, std::ostream& err) { return run_verify(options, out, err); });
  }
  Said verify() const { return verify(verify_options()); }
  Said detach(const std::string& base) const {
    VerifyOptions options = verify_options();
    options.detach = scratch.path(base);
    return verify(options);
  }
  nlohmann::json verify_json(const VerifyOptions& base) const {
    VerifyOptions options = base;
    options.json = true;
    return nlohmann::json::parse(verify(options).out);
  }
  int minisign(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), "minisign");
    return run_program(arguments, input);
  }
  // `minisign -S` over the table's payload.
  void stock_signs(const std::string& name, const std::string& minisig, std::vector<std::string> more = {}) const {
    scratch.put("edge.payload", sample_payload());
    std::vector<std::string> arguments{
        "-S", "-s", scratch.path(name + ".key"), "-m", scratch.path("edge.payload"), "-x", scratch.path(minisig)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    REQUIRE(minisign(arguments) == 0);
  }
  bool stock_verifies(const std::string& payload, const std::string& minisig, const std::string& name) const {
    return minisign({"-V", "-p", scratch.path(name + ".pub"), "-m", scratch.path(payload), "-x",
                     scratch.path(minisig)}) == 0;
  }
};

}  // namespace x0x::policyc
