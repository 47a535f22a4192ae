// toml++ reading a policy and nothing more: the peer of `x0x-policyc compile`, a program of its own like that one.
#include <toml++/toml.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    std::ifstream in(argv[1], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return toml::parse(text, std::string_view(argv[1])).empty() ? 1 : 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "toml-parse: %s\n", failure.what());
    return 2;
  }
}
