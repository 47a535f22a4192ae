// Makes tables and decides on them under callgrind, which counts the decisions' instructions and nothing else.
//
//   decisions make DIRECTORY         writes SIZE.x0xp for every size of tables.hpp
//   decisions run SIZE DIRECTORY     decides on requests spread over the table; all must be allowed
#include <sodium.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "bench/tables.hpp"
#include "policyc/emit.hpp"

using namespace x0x;
using namespace x0x::bench;

namespace {

constexpr std::uint32_t kDecisions = 64;

std::string path_of(const char* directory, const Size& size) {
  return std::string(directory) + "/" + size.name + ".x0xp";
}

int make(const char* directory) {
  for (const Size& size : kSizes) {
    const test::ByteVector file = test::sign(policyc::emit(make_policy(size)));
    std::ofstream out(path_of(directory, size), std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (!out.flush()) return 2;
  }
  return 0;
}

int run(const Size& size, const char* directory) {
  std::ifstream in(path_of(directory, size), std::ios::binary);
  const test::ByteVector file{std::istreambuf_iterator<char>(in), {}};
  const auto verified = verify({file}, test::trust({test::TestKey(1)}, 1));
  if (!verified.ok()) return 2;
  const auto opened = BlobView::open(verified.value());
  if (!opened.ok()) return 2;
  const auto requests = make_requests(size, kDecisions);
  std::uint32_t allowed = 0;
  CALLGRIND_START_INSTRUMENTATION;
  for (const auto& asked : requests) allowed += is_allow(decide(opened.value(), asked->request, 1).decision);
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%u decisions\n", kDecisions);
  return allowed == kDecisions ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (sodium_init() < 0) return 2;
  if (argc == 3 && std::string_view(argv[1]) == "make") return make(argv[2]);
  if (argc != 4 || std::string_view(argv[1]) != "run") return 2;
  const auto* const size = std::ranges::find(kSizes, std::string_view(argv[2]), &Size::name);
  return size == std::end(kSizes) ? 2 : run(*size, argv[3]);
}
