// Makes tables of several sizes and decides on them, for cost_test.py to count instructions under callgrind.
//
//   decide-cost make DIRECTORY     writes small.x0xp, commands.x0xp, pairs.x0xp
//   decide-cost run TABLE          decides on requests spread over the table; all must be allowed
#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "policyc/emit.hpp"
#include "policyc/read_table.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

constexpr int kDecisions = 64;

// Five tokens each, some shared, the rest unlike any other command's.
policyc::Entry numbered_entry(std::uint32_t number, std::uint32_t commands) {
  policyc::Entry made;
  made.agent = id(0xab);
  made.machine = id(0xcd);
  for (int i = 0; i < 4; ++i) made.agent[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(number >> (8 * i));
  for (std::uint32_t c = 0; c < commands; ++c)
    made.commands.push_back(
        command({"service", "--unit", "unit-" + std::to_string(c), "-n", c % 2 == 0 ? "<INT>" : "now"}));
  return made;
}

policyc::Policy policy_of(std::uint32_t pairs, std::uint32_t commands) {
  policyc::Policy made = policy({});
  for (std::uint32_t p = 0; p < pairs; ++p) made.entries.push_back(numbered_entry(p, commands));
  return made;
}

void write(const std::string& path, const policyc::Policy& source) {
  const ByteVector file = sign(policyc::emit(source));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

int run(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const ByteVector file{std::istreambuf_iterator<char>(in), {}};
  const auto verified = verify({file}, trust({TestKey(1)}, 1));
  const auto opened = BlobView::open(verified.value());
  if (!verified.ok() || !opened.ok()) return 2;
  const BlobView& table = opened.value();
  for (std::uint32_t i = 0; i < kDecisions; ++i) {
    const auto rule = static_cast<std::uint32_t>(std::uint64_t{table.rule_count() - 1} * i / (kDecisions - 1));
    OwnedRequest request;
    const std::uint8_t* key = table.pair(table.entry(table.rule(rule).entry).pair).key;
    std::copy_n(key, 32, request.agent.begin());
    std::copy_n(key + 32, 32, request.machine.begin());
    for (const policyc::Token& t : policyc::rule_argv(table, rule))
      request.argv.push_back(t.kind == policyc::Token::Kind::integer ? "42" : t.text);
    const Verdict verdict = x0x::test::decide(table, request);
    if (!is_allow(verdict.decision) || verdict.rule != rule) return 1;
  }
  std::printf("%d decisions\n", kDecisions);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (sodium_init() < 0 || argc != 3) return 2;
  const std::string directory = argv[2];
  if (std::string(argv[1]) == "run") return run(argv[2]);
  write(directory + "/small.x0xp", policy_of(1, 17));
  write(directory + "/commands.x0xp", policy_of(1, 100'000));
  write(directory + "/pairs.x0xp", policy_of(10'000, 10));
  return 0;
}
