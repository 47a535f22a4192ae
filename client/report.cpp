#include "client/report.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "enforcer/text.hpp"

namespace x0x::client {

namespace {

constexpr std::uint64_t kTermLeadMs = 5000;
// The enforcer's timer starts a moment before the time it reports does.
constexpr std::uint64_t kClockSlackMs = 100;

// In the order of wire::DenialReason.
constexpr const char* kDenialHelp[] = {
    "this node runs no commands now: no policy, an expired one, or an audit log that cannot be written "
    "(`x0x-enforcer --doctor` on the node says which)",
    "the front end could not verify who asks",
    "the front end does not trust this agent",
    "the policy has no entry for this agent on this machine (compare `--agent` and `--machine` with the "
    "policy)",
    "no rule of this agent allows this argv (ask the policy's author; `x0x-policyc explain` shows why)",
    "the input is larger than the rule accepts, or the rule accepts none (see `--stdin-file`)",
    "`--timeout` is over the rule's cap (leave it out to get the whole cap)",
    "a request may not choose its directory",
    "too many sessions are running (`x0x-exec sessions` lists them; try again when one has ended)",
    "a token holds a shell character, a newline or a NUL (no shell is involved; such bytes are always "
    "refused)",
    "the node could not start the command (its audit log names the step that failed)",
    "the enforcer could not read the request (do client and enforcer have the same version?)",
};
static_assert(std::size(kDenialHelp) == std::size(wire::kDenialNames));

bool warned(const Outcome& outcome, wire::WarningKind kind) {
  return std::ranges::any_of(outcome.warnings, [kind](const Warning& w) { return w.kind == kind; });
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string seconds(std::uint64_t ms) { return fmt::format("{}.{} s", ms / 1000, ms % 1000 / 100); }

Ending ending_of_signal(const Outcome& outcome, int signal, std::uint64_t duration_ms) {
  const std::string how = fmt::format("{} after {}", signal_name(signal), seconds(duration_ms));
  if (killed_by_cap(outcome)) {
    const std::string limit = outcome.timeout_ms > 0 ? fmt::format("`--timeout` was {}", seconds(outcome.timeout_ms))
                                                     : "the rule's duration cap";
    const char* const early = signal == SIGTERM ? "; SIGTERM comes up to 5 s before it" : "";
    return {kOwnFailure, "killed", fmt::format("its time was up: {} ({}{})", how, limit, early)};
  }
  if (warned(outcome, wire::WarningKind::lease_expired))
    return {kOwnFailure, "killed", fmt::format("the lease ran out: {} (this client was stopped too long)", how)};
  if (warned(outcome, wire::WarningKind::peer_disconnected))
    return {kOwnFailure, "killed", fmt::format("the connection was lost: {}", how)};
  if (!outcome.cancelled_here && warned(outcome, wire::WarningKind::cancelled))
    return {kOwnFailure, "killed", fmt::format("the enforcer cancelled the session: {}", how)};
  return {128 + signal, outcome.cancelled_here ? "cancelled" : "killed", how};
}

Ending ending_of_exit(const Outcome& outcome, const Exit& exit) {
  if (exit.denial_reason) {
    const auto reason = static_cast<std::size_t>(*exit.denial_reason);
    return {kOwnFailure, "denied", fmt::format("{}: {}", wire::kDenialNames[reason], kDenialHelp[reason])};
  }
  if (outcome.output_error == EPIPE) return {128 + SIGPIPE, "stopped", "nobody reads the output any more"};
  if (outcome.output_error != 0)
    return {kOwnFailure, "output lost", fmt::format("cannot write it: {}", ::strerror(outcome.output_error))};
  if (exit.signal) {
    if (*exit.signal > 0 && *exit.signal < 127) return ending_of_signal(outcome, *exit.signal, exit.duration_ms);
    return {kOwnFailure, "killed", fmt::format("by a signal that does not exist: {}", *exit.signal)};
  }
  if (exit.code && *exit.code >= 0 && *exit.code <= 255) return {*exit.code, "", ""};
  return {kOwnFailure, "ended",
          exit.code ? fmt::format("with the impossible code {}", *exit.code) : "without a code or a signal"};
}

// U+200B–200F, U+2028–202E, U+2060–206F, U+FEFF, and the controls below U+00A0.
bool is_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

std::string paint(std::string_view text, const char* colour, int fd) {
  return wants_colour(fd) ? fmt::format("\033[{}m{}\033[0m", colour, text) : std::string(text);
}

}  // namespace

bool killed_by_cap(const Outcome& outcome) {
  if (!outcome.exit || !outcome.exit->signal || outcome.cancelled_here) return false;
  if (*outcome.exit->signal != SIGTERM && *outcome.exit->signal != SIGKILL) return false;
  for (const wire::WarningKind other :
       {wire::WarningKind::lease_expired, wire::WarningKind::peer_disconnected, wire::WarningKind::cancelled})
    if (warned(outcome, other)) return false;
  if (outcome.timeout_ms == 0) return warned(outcome, wire::WarningKind::duration_approaching_cap);
  const std::uint64_t limit = outcome.timeout_ms;
  const std::uint64_t told_at = limit > kTermLeadMs ? limit - kTermLeadMs : limit;
  return outcome.exit->duration_ms + kClockSlackMs >= told_at;
}

Ending ending_of(const Outcome& outcome) {
  if (outcome.left_on_signal != 0)
    return {128 + outcome.left_on_signal, "left",
            outcome.exit ? "the rest of the output is not shown"
                         : "did not wait for the command's end (the enforcer kills it)"};
  if (!outcome.lost.empty()) return {kOwnFailure, "transport", outcome.lost};
  if (!outcome.exit) return {kOwnFailure, "transport", "lost the enforcer"};
  return ending_of_exit(outcome, *outcome.exit);
}

std::string result_json(const Outcome& outcome, const Ending& ending) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  const Exit exit = outcome.exit.value_or(Exit{});
  Json warnings = Json::array();
  for (const Warning& warning : outcome.warnings)
    warnings.push_back(
        {{"kind", wire::kWarningNames[static_cast<std::size_t>(warning.kind)]}, {"message", warning.message}});
  Json result;
  result["request_id"] = to_uuid(outcome.session.request_id);
  result["code"] = or_null(exit.code);
  result["signal"] = or_null(exit.signal);
  result["duration_ms"] = exit.duration_ms;
  result["stdout_b64"] = base64(outcome.out);
  result["stderr_b64"] = base64(outcome.err);
  result["stdout_bytes_total"] = exit.stdout_bytes_total;
  result["stderr_bytes_total"] = exit.stderr_bytes_total;
  result["truncated"] = exit.truncated;
  result["denial_reason"] =
      exit.denial_reason ? Json(wire::kDenialNames[static_cast<std::size_t>(*exit.denial_reason)]) : Json(nullptr);
  result["warnings"] = std::move(warnings);
  result["error"] = ending.kind.empty() ? Json(nullptr) : Json(ending.kind + ": " + ending.why);
  result["status"] = ending.status;
  return result.dump();
}

std::string warning_line(const Warning& warning, int fd) {
  const char* const name = wire::kWarningNames[static_cast<std::size_t>(warning.kind)];
  return fmt::format("x0x-exec: {}: {}{}{}", paint("warning", "1;33", fd), name, warning.message.empty() ? "" : ": ",
                     printable(warning.message));
}

std::string error_line(std::string_view kind, std::string_view why, int fd) {
  return fmt::format("x0x-exec: {}: {}", paint(kind, "1;31", fd), printable(why));
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    while (length <= 4 && i + length <= text.size() && !is_utf8(as_bytes(text.substr(i, length)))) ++length;
    if (length > 4 || i + length > text.size()) {
      shown += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[i++]));
      continue;
    }
    const auto lead = static_cast<std::uint8_t>(text[i]);
    char32_t c = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t k = 1; k < length; ++k) c = c << 6 | (static_cast<std::uint8_t>(text[i + k]) & 0x3fu);
    if (is_hidden(c))
      shown += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(c));
    else
      shown += text.substr(i, length);
    i += length;
  }
  return shown;
}

bool wants_colour(int fd) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return (no_colour == nullptr || *no_colour == '\0') && term != nullptr && std::string_view(term) != "dumb" &&
         ::isatty(fd) == 1;
}

std::string base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < have ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= have ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace x0x::client
