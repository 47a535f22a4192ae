// How a session's end is told: exit status, one line for a person, one JSON object for a program.
//
// tests/client/report_test.cpp walks through every reason, every signal rule and hostile texts.
#pragma once

#include <string>
#include <string_view>

#include "client/run.hpp"

namespace x0x::client {

inline constexpr int kOwnFailure = 255;  // denial, transport failure, cap kill: not the command's own status

struct Ending {
  int status = kOwnFailure;
  std::string kind;  // `denied`, `killed`, …; empty when the command simply ended
  std::string why;
};
Ending ending_of(const Outcome& outcome);

// Killed because its time was up. The frames do not say so; this is what they allow to conclude: the signal
// is SIGTERM or SIGKILL, nobody cancelled, no lease ran out, and the time was up. With a requested timeout
// that is known: SIGTERM goes out 5 s before it (at it, when it is 5 s or less). Without one the cap is the
// rule's, which only the enforcer knows; then its own duration warning has to have come first.
bool killed_by_cap(const Outcome& outcome);

std::string result_json(const Outcome& outcome, const Ending& ending);

// Lines without their newline, coloured when `fd` is a terminal that wants it.
std::string warning_line(const Warning& warning, int fd);
std::string error_line(std::string_view kind, std::string_view why, int fd);

// Control characters, and those that are invisible or turn the writing direction, become `\u{…}`; bytes that
// are not UTF-8 become `\x…`.
std::string printable(std::string_view text);
bool wants_colour(int fd);
std::string base64(std::string_view bytes);

}  // namespace x0x::client
