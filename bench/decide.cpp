// A decision, against the linear scan and against the floor: the least that must be done to know who asks for what.
#include <cstring>
#include <stdexcept>

#include "bench/clock.hpp"
#include "bench/linear_scan.hpp"
#include "bench/parts.hpp"
#include "bench/series.hpp"
#include "bench/tables.hpp"
#include "policyc/emit.hpp"

namespace x0x::bench {

namespace {

constexpr std::uint32_t kWarmRequests = 64, kColdRequests = 100'000;
constexpr int kRounds = 15;
constexpr std::int64_t kSampleNs = 4'000'000;  // of work in a sample; more when one pass over the requests takes longer

volatile std::uint64_t sink;

struct Bench {
  Size size;
  test::OpenTable table;
  PlainList list;  // empty for the largest, which is compared with the smallest only
  std::vector<std::unique_ptr<Asked>> warm, cold;
};

Bench make_bench(const Size& size) {
  Bench made{size, {}, {}, make_requests(size, kWarmRequests), make_requests(size, kColdRequests, Order::shuffled)};
  const policyc::Policy policy = make_policy(size);
  made.table = test::open_policy(policy);
  if (made.table.fault != Fault::none) throw std::runtime_error(fault_name(made.table.fault));
  const bool compared = std::uint64_t{size.pairs} * size.commands <= 100'000;
  if (compared) made.list = plain_list(policy);
  for (const auto& asked : made.warm) {
    const bool agreed = is_allow(decide(made.table.view, asked->request, 1).decision) &&
                        (!compared || linear_scan(made.list, asked->pair.data(), asked->argv));
    if (!agreed) throw std::runtime_error("a request is not allowed by both sides");
  }
  return made;
}

// Nanoseconds of one call. `passes` is settled by the first sample and kept.
template <class Call>
double sample(const std::vector<std::unique_ptr<Asked>>& requests, int& passes, const Call& call) {
  for (bool settled = passes > 0;; passes *= 2) {
    passes = std::max(passes, 1);
    std::uint64_t sum = 0;
    const std::int64_t start = cpu_ns();
    for (int i = 0; i < passes; ++i)
      for (const auto& asked : requests) sum += call(*asked);
    const std::int64_t taken = cpu_ns() - start;
    sink = sum;
    if (settled || taken >= kSampleNs)
      return static_cast<double>(taken) / passes / static_cast<double>(requests.size());
  }
}

// The block of the request as the table would hold it: elsewhere in memory.
std::uint64_t floor_of(const Asked& asked, const std::string& stored) {
  const std::uint64_t hash = hash_bytes(0, asked.pair);
  return hash + static_cast<std::uint64_t>(std::memcmp(asked.block.data(), stored.data(), stored.size()) == 0);
}

}  // namespace

int decide_part() {
  std::vector<Bench> benches;
  for (const Size& size : kSizes) benches.push_back(make_bench(size));
  const auto stored = make_requests(kSizes[0], kWarmRequests);
  Series series;
  std::vector<std::array<int, 4>> passes(benches.size());
  for (int round = -1; round < kRounds; ++round) {  // the first only warms up
    const auto add = [&](const std::string& name, double value) {
      if (round >= 0) series.add(name, value);
    };
    for (std::size_t b = 0; b < benches.size(); ++b) {
      const Bench& bench = benches[b];
      const std::string name = bench.size.name;
      const auto ours = [&](const Asked& asked) {
        return std::uint64_t{decide(bench.table.view, asked.request, 1).rule};
      };
      add("ours " + name, sample(bench.warm, passes[b][0], ours));
      add("cold " + name, sample(bench.cold, passes[b][1], ours));
      if (b == 0) {
        std::size_t i = 0;
        add("floor", sample(bench.warm, passes[b][2],
                            [&](const Asked& asked) { return floor_of(asked, stored[i++ % kWarmRequests]->block); }));
      }
      if (!bench.list.empty())
        add("scan " + name, sample(bench.warm, passes[b][3], [&](const Asked& asked) {
              return std::uint64_t{linear_scan(bench.list, asked.pair.data(), asked.argv)};
            }));
    }
  }
  series.print();
  return 0;
}

}  // namespace x0x::bench
