// The end of an audit log after a crash: the last line that was not torn is found, and every byte after it is counted.
#include "enforcer/audit.hpp"
#include "fuzz/target.hpp"

using namespace x0x;

namespace {

// The same, the long way round: forwards, line by line.
AuditTail find_tail_slowly(std::string_view text) {
  AuditTail tail;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    tail.unended = end == std::string_view::npos;
    if (!tail.unended && !line.ends_with('~'))
      tail.record = line, tail.torn = 0;
    else
      tail.torn += line.size() + (tail.unended ? 1 : 0);  // the `~` that will end it
    text.remove_prefix(tail.unended ? text.size() : end + 1);
  }
  return tail;
}

}  // namespace

X0X_FUZZ(audit_tail) {
  const std::string text(x0x::as_text({data, size}));
  const AuditTail found = find_tail(text), expected = find_tail_slowly(text);
  fuzz::promise(found.record.data() == expected.record.data() && found.record == expected.record,
                "the last whole line");
  fuzz::promise(found.torn == expected.torn, "how much was torn");
  fuzz::promise(found.unended == expected.unended, "whether the last line has no end");
  const std::string ended = found.unended ? text + "~\n" : text;
  const AuditTail healed = find_tail(ended);
  fuzz::promise(healed.record == found.record && healed.torn == found.torn && !healed.unended,
                "ending a torn line changes nothing else");
  return 0;
}
