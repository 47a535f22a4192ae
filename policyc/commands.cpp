#include "policyc/commands.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "policyc/text.hpp"

namespace x0x::policyc {

std::uint64_t parse_number(const std::string& option, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number < least || number > most)
    throw CLI::ValidationError(option, fmt::format("{} is not a whole number from {} to {}", quote(text), least, most));
  return number;
}

CLI::Option* add_password_option(CLI::App& command, PasswordSource& password) {
  return add_number_option(
      command, "--password-fd", password.descriptor, 0, std::numeric_limits<int>::max(),
      "Read the password from the first line of this descriptor; without it the terminal is asked");
}

void add_format_option(CLI::App& command, bool& json) {
  command
      .add_option_function<std::string>(
          "--format", [&json](const std::string& format) { json = format == "json"; }, "human or json")
      ->check(CLI::IsMember({"human", "json"}))
      ->type_name("FORMAT");
}

}  // namespace x0x::policyc
