// The end of an audit log after a crash: the last line that was not torn is found, and every byte after it is counted.
#include "enforcer/audit.hpp"
#include "fuzz/target.hpp"

using namespace x0x;

namespace {

// The same, the long way round: forwards, line by line.
std::string_view last_record_slowly(std::string_view lines, std::uint64_t& torn) {
  std::string_view record;
  torn = 0;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    torn = line.ends_with('~') ? torn + line.size() : 0;
    if (torn == 0) record = line;
    lines.remove_prefix(line.size() + 1);
  }
  return record;
}

}  // namespace

X0X_FUZZ(audit_tail) {
  std::string lines(x0x::as_text({data, size}));
  if (!lines.ends_with('\n')) lines += "~\n";
  std::uint64_t torn = 0, expected_torn = 0;
  const std::string_view found = last_record(lines, torn), expected = last_record_slowly(lines, expected_torn);
  fuzz::promise(found.data() == expected.data() && found == expected, "the last whole line");
  fuzz::promise(torn == expected_torn, "how much was torn");
  return 0;
}
