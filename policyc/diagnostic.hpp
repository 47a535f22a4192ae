// Every kind of problem the compiler reports, and the list of those it found in one file.
//
// A code never changes its meaning and is never used again for another. docs/diagnostics.md explains each one
// and corpus/policies/ shows each one; tests/policyc/diagnostic_test.cpp and corpus_test.cpp hold them
// together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/policy.hpp"

namespace x0x::policyc {

// clang-format off
#define X0X_DIAGNOSTIC_KINDS(X) \
  /* the file as a whole */ \
  X(E001, invalid_utf8,            "invalid-utf8",            "the file holds bytes that are not UTF-8") \
  X(E002, nul_byte,                "nul-byte",                "the file holds a NUL byte") \
  X(E003, toml_syntax,             "toml-syntax",             "the file is not valid TOML") \
  X(E004, duplicate_key,           "duplicate-key",           "a key or table is defined twice") \
  X(E005, too_complex,             "too-complex",             "the file is nested deeper or holds more values than any policy needs") \
  /* keys and types */ \
  X(E010, unknown_key,             "unknown-key",             "a key that the policy language does not have") \
  X(E011, wrong_type,              "wrong-type",              "a value of the wrong type") \
  X(E012, missing_key,             "missing-key",             "a required key is absent") \
  X(E013, misspelt_table,          "misspelt-table",          "a top-level name that is nearly `exec` or `policy`") \
  X(E014, negative_number,         "negative-number",         "a number below zero") \
  X(E015, zero_number,             "zero-number",             "a zero where it means nothing") \
  X(E016, number_too_large,        "number-too-large",        "a number that does not fit") \
  X(E017, empty_array,             "empty-array",             "an array that must have at least one element") \
  X(E018, empty_string,            "empty-string",            "a string that must not be empty") \
  X(E019, nul_in_string,           "nul-in-string",           "a string that holds a NUL character") \
  /* argv */ \
  X(E020, template_in_program,     "template-in-program",     "a template in `argv[0]`") \
  X(E021, unknown_template,        "unknown-template",        "a template that does not exist") \
  X(E022, int_not_alone,           "int-not-alone",           "`<INT>` with text around it") \
  X(E023, url_path_not_last,       "url-path-not-last",       "text after `<URL_PATH>`") \
  X(E024, stray_angle_bracket,     "stray-angle-bracket",     "a `<` or `>` that is not part of a template") \
  X(E025, template_case,           "template-case",           "a template that is not in upper case") \
  X(E026, forbidden_character,     "forbidden-character",     "a character that no request may hold") \
  X(E027, relative_program,        "relative-program",        "`argv[0]` is a relative path") \
  X(E028, empty_program,           "empty-program",           "`argv[0]` is empty") \
  X(E029, too_many_tokens,         "too-many-tokens",         "an argv with more tokens than a request may have") \
  X(E030, token_too_long,          "token-too-long",          "a string longer than the kernel passes to a program") \
  /* values */ \
  X(E040, invalid_id,              "invalid-id",              "an id that is not 64 hexadecimal digits") \
  X(E041, invalid_sha256,          "invalid-sha256",          "a digest that is not 64 hexadecimal digits") \
  X(E042, relative_path,           "relative-path",           "a path that does not start with `/`") \
  X(E043, concurrency_order,       "concurrency-order",       "more sessions per agent than in total") \
  X(E044, unknown_choice,          "unknown-choice",          "a word that is not one of the choices") \
  X(E045, local_date_time,         "local-date-time",         "a date-time without an offset") \
  X(E046, fractional_second,       "fractional-second",       "a date-time with a fraction of a second") \
  X(E047, date_before_epoch,       "date-before-epoch",       "a date-time that is not after 1970-01-01T00:00:00Z") \
  X(E048, empty_window,            "empty-window",            "a policy that expires before it begins") \
  X(E049, invalid_env_name,        "invalid-env-name",        "an environment name that is not an identifier") \
  X(E050, dangerous_env_name,      "dangerous-env-name",      "an environment name that changes what a program loads or runs") \
  X(E051, duplicate_item,          "duplicate-item",          "an array that lists something twice") \
  /* the compiled table */ \
  X(E060, example_failed,          "example-failed",          "an `allow` or `deny` example is decided otherwise") \
  X(E061, too_ambiguous,           "too-ambiguous",           "a pair's templates are placed in too many ways") \
  X(E062, crowded_index,           "crowded-index",           "too many commands or pairs belong into one place of the table's index") \
  /* warnings */ \
  X(W001, unknown_table,           "unknown-table",           "a top-level table or key that is not part of the policy") \
  X(W002, shadowed_command,        "shadowed-command",        "a command that an earlier one always matches first") \
  X(W003, setting_without_effect,  "setting-without-effect",  "a setting that another one makes pointless") \
  X(W004, invisible_character,     "invisible-character",     "a character that is not shown or rearranges what is shown") \
  X(W010, runs_other_programs,     "runs-other-programs",     "a program that can run other programs, without a `reason`") \
  X(W011, runs_given_code,         "runs-given-code",         "an interpreter told to run code from its arguments, without a `reason`") \
  X(W012, open_url_path,           "open-url-path",           "`<URL_PATH>` leaves the host, the port or the file open") \
  X(W013, curl_reads_config,       "curl-reads-config",       "`curl` without `-q` reads a configuration file") \
  X(W014, starts_pager,            "starts-pager",            "a program that may start a pager") \
  X(W015, world_writable_path,     "world-writable-path",     "a path in a directory that everybody can write to")
// clang-format on

enum class Kind {
#define X(code, kind, name, summary) kind,
  X0X_DIAGNOSTIC_KINDS(X)
#undef X
};

enum class Severity { error, warning };

struct KindInfo {
  Kind kind;
  std::string_view code, name, summary;
  Severity severity() const { return code[0] == 'E' ? Severity::error : Severity::warning; }
};

std::span<const KindInfo> all_kinds();
const KindInfo& info(Kind kind);

struct Diagnostic {
  Kind kind;
  Severity severity;
  Span span;
  std::string message;
  std::string help;  // may be empty; more than one line is several pieces of advice
};

// What was found in one file.
class Diagnostics {
 public:
  void report(Kind kind, Span span, std::string message, std::string help = {});

  // In the order of the file; at one place, in the order they were reported.
  void sort();

  // What --strict means: from here on every warning found so far is an error.
  void promote_warnings();

  std::size_t errors() const { return errors_; }
  std::size_t warnings() const { return all_.size() - errors_; }
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
  std::vector<Diagnostic> all_;
  std::size_t errors_ = 0;
};

}  // namespace x0x::policyc
