#include "policyc/commands.hpp"

namespace x0x::policyc {

void add_format_option(CLI::App& command, bool& json) {
  command
      .add_option_function<std::string>(
          "--format", [&json](const std::string& format) { json = format == "json"; }, "human or json")
      ->check(CLI::IsMember({"human", "json"}))
      ->type_name("FORMAT");
}

}  // namespace x0x::policyc
