// x0x-policyc: the subcommands and their options.
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "policyc/cmd_check.hpp"

int main(int argc, char** argv) {
  using namespace x0x::policyc;
  CLI::App app{"Compiles exec policies into signed decision tables", "x0x-policyc"};
  app.require_subcommand(1);

  CheckOptions check;
  CLI::App* check_command = app.add_subcommand("check", "Report every problem of policy files");
  check_command->add_option("FILE", check.files, "Policy files; - reads standard input")->required();
  const std::map<std::string, ReportFormat> formats = {{"human", ReportFormat::human},
                                                       {"json", ReportFormat::json},
                                                       {"sarif", ReportFormat::sarif},
                                                       {"github", ReportFormat::github}};
  check_command->add_option("--format", check.format, "human, json, sarif or github")
      ->transform(CLI::CheckedTransformer(formats));
  check_command->add_flag("--strict", check.strict, "Treat warnings as errors");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run_check(check);
}
