#include "policyc/cmd_check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "policyc/commands.hpp"
#include "policyc/compile.hpp"
#include "policyc/parse.hpp"
#include "policyc/render.hpp"
#include "policyc/report_formats.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

void print(std::FILE* stream, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); }

std::string summary(const std::string& file, const Diagnostics& diagnostics, const std::optional<Policy>& policy) {
  if (!diagnostics.all().empty())
    return fmt::format("{} in {}\n", count_problems(diagnostics.errors(), diagnostics.warnings()), file);
  std::size_t commands = 0;
  for (const Entry& entry : policy->entries) commands += entry.commands.size();
  return fmt::format("{}: ok, {} in {}\n", file, count_of(commands, "command", "commands"),
                     count_of(policy->entries.size(), "entry", "entries"));
}

FileReport check_file(const CheckOptions& options, const std::string& path) {
  FileReport report{path == "-" ? "<stdin>" : path, {}, {}};
  const std::optional<Source> source = load_source(path, report.unreadable);
  if (!source) {
    print(stderr, fmt::format("x0x-policyc: {}\n", report.unreadable));
    return report;
  }
  const std::optional<Policy> policy = parse_policy(*source, report.diagnostics);
  if (policy && options.back_end) {
    options.back_end(*source, *policy, report.diagnostics);
    report.diagnostics.sort();
  }
  if (options.strict) report.diagnostics.promote_warnings();
  if (options.format == ReportFormat::human) {
    print(stderr, render_human(*source, report.diagnostics, wants_colour(STDERR_FILENO)));
    print(stderr, summary(escape(report.file), report.diagnostics, policy));
  }
  return report;
}

}  // namespace

bool wants_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(descriptor) == 1;
}

int run_check(const CheckOptions& options) {
  if (std::count(options.files.begin(), options.files.end(), "-") > 1) {
    print(stderr, "x0x-policyc: `-` can be given only once\n");
    return 2;
  }
  std::vector<FileReport> reports;
  bool unreadable = false, errors = false;
  for (const std::string& path : options.files) {
    reports.push_back(check_file(options, path));
    unreadable |= !reports.back().unreadable.empty();
    errors |= reports.back().diagnostics.errors() > 0;
  }
  const Sink to_stdout = [](std::string_view text) { print(stdout, text); };
  if (options.format == ReportFormat::json) write_json(reports, to_stdout);
  if (options.format == ReportFormat::sarif) write_sarif(reports, to_stdout);
  if (options.format == ReportFormat::github) write_github(reports, to_stdout);
  return unreadable ? 2 : errors ? 1 : 0;
}

void add_check_command(CLI::App& app, std::function<int()>& run) {
  auto* command = app.add_subcommand("check", "Report every problem of policy files");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("FILE", options->files, "Policy files; - reads standard input")->required();
  const std::map<std::string, ReportFormat> formats = {{"human", ReportFormat::human},
                                                       {"json", ReportFormat::json},
                                                       {"sarif", ReportFormat::sarif},
                                                       {"github", ReportFormat::github}};
  command
      ->add_option_function<std::string>(
          "--format", [options, formats](const std::string& format) { options->format = formats.at(format); },
          "human (standard error), json, sarif or github (standard output)")
      ->check(CLI::IsMember({"human", "json", "sarif", "github"}))
      ->type_name("FORMAT");
  command->add_flag("--strict", options->strict, "Treat warnings as errors");
  command->footer(
      "Every problem of every file is listed, with its place and a code that docs/diagnostics.md "
      "explains.\n\n"
      "Example:\n"
      "  x0x-policyc check --strict exec-acl.toml\n\n"
      "Exit status: 0 no errors (warnings are not errors unless --strict), 1 errors, 2 usage or I/O.");
  options->back_end = [](const Source&, const Policy& policy, Diagnostics& found) {
    (void)compile_policy(policy, found);
  };
  command->callback([&run, options] { run = [options] { return run_check(*options); }; });
}

}  // namespace x0x::policyc
