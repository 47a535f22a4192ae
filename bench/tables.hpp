// Policies of any size, and requests for them, made in memory.
#pragma once

#include <memory>

#include "tests/support/table.hpp"

namespace x0x::bench {

struct Size {
  const char* name;
  std::uint32_t pairs, commands;  // commands of each pair
};

// The sizes that are measured, smallest first, largest last.
inline constexpr Size kSizes[] = {
    {"17", 1, 17}, {"1000x20", 1000, 20}, {"10000x10", 10000, 10}, {"1x100000", 1, 100000}, {"million", 1000, 1000}};

// Every command has five tokens: some shared, one unlike any other command's, every second one an <INT>.
policyc::Policy make_policy(const Size& size);

// A request for the given command of make_policy(), and the bytes it points to.
struct Asked {
  std::array<std::uint8_t, 64> pair;
  std::vector<std::string> argv;
  std::string block;  // every token followed by a NUL, as a frame is kept
  Request request;
};

// `count` requests spread evenly over all commands; every one is allowed. Shuffled, they come in an order that no cache
// can guess, but lie in memory in the order in which they are asked.
enum class Order { as_they_are, shuffled };
std::vector<std::unique_ptr<Asked>> make_requests(const Size& size, std::uint32_t count,
                                                  Order order = Order::as_they_are);

}  // namespace x0x::bench
