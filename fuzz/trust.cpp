// The trust file: whatever it holds, the threshold can be met, and not by one key alone under two names.
#include <cstring>

#include "enforcer/verify.hpp"
#include "fuzz/target.hpp"

using namespace x0x;

X0X_FUZZ(trust) {
  const Result<TrustedKeys> parsed = parse_trust({data, size});
  if (!parsed.ok()) return 0;
  const TrustedKeys& trusted = parsed.value();
  fuzz::promise(trusted.count >= 1 && trusted.count <= kMaxTrustedKeys, "between one key and the most");
  fuzz::promise(trusted.threshold >= 1 && trusted.threshold <= trusted.count, "the threshold can be met");
  for (std::uint32_t i = 0; i < trusted.count; ++i)
    for (std::uint32_t k = 0; k < i; ++k)
      fuzz::promise(std::memcmp(trusted.keys[i].number, trusted.keys[k].number, 8) != 0 &&
                        std::memcmp(trusted.keys[i].key, trusted.keys[k].key, 32) != 0,
                    "keys differ in number and in key");
  return 0;
}
