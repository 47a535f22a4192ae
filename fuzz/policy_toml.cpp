// An author's file: whatever it holds, it is a policy or has at least one error, and what is said about it is
// printable.
#include "fuzz/target.hpp"
#include "policyc/compile.hpp"
#include "policyc/parse.hpp"
#include "policyc/render.hpp"

using namespace x0x;
using namespace x0x::policyc;

X0X_FUZZ(policy_toml) {
  const Source source = make_source("fuzz.toml", std::string(x0x::as_text({data, size})));
  Diagnostics diagnostics;
  const std::optional<Policy> policy = parse_policy(source, diagnostics);
  fuzz::promise(policy.has_value() == (diagnostics.errors() == 0), "a policy, or errors");
  for (const char c : render_human(source, diagnostics, false))
    fuzz::promise(static_cast<unsigned char>(c) >= 0x20 || c == '\n',
                  "nothing of the file reaches a terminal unescaped");
  if (policy && !compile_policy(*policy, diagnostics))
    fuzz::promise(diagnostics.errors() > 0, "a table that the reader opens, or the reason there is none");
  return 0;
}
