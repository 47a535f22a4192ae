// Every file of the corpus through every target, without libFuzzer: fuzz-replay [--target NAME] PATH…
//
// Run by `./dev test` under ASan and UBSan. When a target fails, the last line says which one and with which file.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include "fuzz/target.hpp"

namespace {

struct Target {
  const char* name;
  std::size_t max_size;
  int (*run)(const std::uint8_t*, std::size_t);
};

#define X0X_DECLARE(name, max_size) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
#define X0X_ENTRY(name, max_size) {#name, max_size, fuzz_##name},
X0X_FUZZ_TARGETS(X0X_DECLARE)
constexpr Target kTargets[] = {X0X_FUZZ_TARGETS(X0X_ENTRY)};

std::string current;  // what is running, for whoever reads about its crash

void name_current() { [[maybe_unused]] const auto n = write(2, current.data(), current.size()); }
void on_abort(int) {
  name_current();
  _exit(134);
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& found : std::filesystem::recursive_directory_iterator(path))
    if (found.is_regular_file()) files.push_back(found.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

int main(int argc, char** argv) {
  std::string only;
  std::size_t runs = 0, files = 0;
  std::signal(SIGABRT, on_abort);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(name_current);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--target") == 0 && i + 1 < argc) {
      only = argv[++i];
      continue;
    }
    for (const auto& path : files_below(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      files += 1;
      for (const Target& target : kTargets) {
        if ((!only.empty() && only != target.name) || bytes.size() > target.max_size) continue;
        current = "fuzz-replay: " + std::string(target.name) + " failed with " + path.string() + "\n";
        target.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        runs += 1;
      }
    }
  }
  std::printf("%zu files, %zu runs\n", files, runs);
  return runs > 0 ? 0 : 1;
}
