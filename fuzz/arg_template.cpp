// An argv token of a policy: read without a problem, it means exactly what was written.
#include "policyc/arg_template.hpp"
#include "enforcer/text.hpp"
#include "fuzz/target.hpp"

using namespace x0x;
using policyc::Token;

X0X_FUZZ(arg_template) {
  static policyc::ArgReader reader;
  if (!is_utf8({data, size})) return 0;  // no TOML string holds anything else
  const std::string token(x0x::as_text({data, size}));
  const policyc::Arg arg = reader.read(token);
  for (const policyc::ArgProblem& problem : arg.problems)
    fuzz::promise(problem.first <= size && !problem.message.empty(), "a problem has a place and a message");
  if (!arg.problems.empty()) return 0;
  const char* const ends[] = {"", "<INT>", "<URL_PATH>"};
  const std::string written = std::string(arg.text) + ends[static_cast<int>(arg.kind)];
  fuzz::promise(written == token, "a token without a problem is its text and its template");
  fuzz::promise(arg.text.find_first_of("<>") == std::string_view::npos, "no bracket is left in the text");
  return 0;
}
