#include "bench/tables.hpp"

#include <algorithm>
#include <random>

namespace x0x::bench {

namespace {

policyc::Id agent_of(std::uint32_t pair) {
  policyc::Id agent = test::id(0xab);
  for (std::size_t i = 0; i < 4; ++i) agent[i] = static_cast<std::uint8_t>(pair >> (8 * i));
  return agent;
}

std::vector<std::string> argv_of(std::uint32_t command, const char* number) {
  return {"service", "--unit", "unit-" + std::to_string(command), "-n", command % 2 == 0 ? number : "now"};
}

std::unique_ptr<Asked> ask(std::uint32_t pair, std::uint32_t command) {
  auto asked = std::make_unique<Asked>();
  std::ranges::copy(agent_of(pair), asked->pair.begin());
  std::ranges::copy(test::id(0xcd), asked->pair.begin() + 32);
  asked->argv = argv_of(command, "42");
  for (const std::string& token : asked->argv) asked->block.append(token).push_back('\0');
  asked->request = {asked->pair.data(), test::bytes(asked->block)};
  return asked;
}

}  // namespace

policyc::Policy make_policy(const Size& size) {
  policyc::Policy made = test::policy({});
  for (std::uint32_t p = 0; p < size.pairs; ++p) {
    policyc::Entry& entry = made.entries.emplace_back();
    entry.agent = agent_of(p);
    entry.machine = test::id(0xcd);
    for (std::uint32_t c = 0; c < size.commands; ++c) entry.commands.push_back(test::command(argv_of(c, "<INT>")));
  }
  return made;
}

std::vector<std::unique_ptr<Asked>> make_requests(const Size& size, std::uint32_t count, Order order) {
  const std::uint64_t last = std::uint64_t{size.pairs} * size.commands - 1;
  std::vector<std::uint64_t> rules;
  for (std::uint32_t i = 0; i < count; ++i) rules.push_back(last * i / (count - 1));
  if (order == Order::shuffled) std::ranges::shuffle(rules, std::mt19937_64(1));
  std::vector<std::unique_ptr<Asked>> requests;
  for (const std::uint64_t rule : rules)
    requests.push_back(
        ask(static_cast<std::uint32_t>(rule / size.commands), static_cast<std::uint32_t>(rule % size.commands)));
  return requests;
}

}  // namespace x0x::bench
