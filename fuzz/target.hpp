// What a fuzz target is: a function of bytes, in memory only, that must neither crash nor break a promise.
//
// Each target is one file of this directory. libFuzzer runs one of them; replay.cpp runs them all over every file of
// corpus/, and does so in `./dev test`. docs/fuzzing.md explains a campaign.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "enforcer/text.hpp"

// The name of a target, and the largest input it is given.
#define X0X_FUZZ_TARGETS(T) \
  T(policy_toml, 4096)      \
  T(arg_template, 512)      \
  T(trust, 4096)            \
  T(frame, 2048)            \
  T(answer, 2048)           \
  T(audit_tail, 2048)       \
  T(json, 1024)             \
  T(message, 2048)          \
  T(table_verify, 2048)     \
  T(table_open, 4096)       \
  T(table_decide, 1024)     \
  T(session, 1024)

#ifdef X0X_LIBFUZZER
#define X0X_FUZZ(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define X0X_FUZZ(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size)
#endif

namespace x0x::fuzz {

inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Decisions taken from the input, one byte each; zeroes when it is used up.
class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() { return rest_.empty() ? std::uint8_t{0} : take(1)[0]; }
  std::size_t below(std::size_t n) {
    const std::size_t high = n > 256 ? byte() : 0u;
    return (high << 8 | byte()) % n;
  }
  Bytes take(std::size_t n) {
    const Bytes taken = rest_.first(n < rest_.size() ? n : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  // `known` with changes of the input's choice, in places of its choice: what random bytes alone would never come near.
  std::vector<std::uint8_t> edit(std::vector<std::uint8_t> known) {
    while (!empty() && !known.empty()) {
      const std::uint8_t what = byte();
      const auto at = known.begin() + static_cast<std::ptrdiff_t>(below(known.size()));
      if (what % 8 == 0)
        known.erase(at);
      else if (what % 8 == 1)
        known.insert(at, byte());
      else if (what % 8 == 2)
        *at = static_cast<std::uint8_t>(*at + (what < 128 ? 1 : -1));
      else
        *at = byte();
    }
    return known;
  }

 private:
  Bytes rest_;
};

}  // namespace x0x::fuzz
