// client/input.cpp: files of every size up to what a request can carry.
#include "client/input.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "client/connection.hpp"
#include "tests/client/peer.hpp"

using namespace x0x::client;
using test::TemporaryDirectory;

namespace {

std::string why_not(const std::string& file) {
  try {
    Request request;
    request.argv = {"cat"};
    request.stdin_bytes = read_input(file);
    check_size(test::test_session(), request);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("a file is read whole, byte for byte") {
  TemporaryDirectory directory;
  const std::string path = directory.path + "/input";
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += static_cast<char>(i * 7);
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(read_input(path) == bytes);
  std::ofstream(path, std::ios::trunc).flush();
  CHECK(read_input(path).empty());
}

TEST_CASE("what does not fit is refused with its size") {
  TemporaryDirectory directory;
  const std::string path = directory.path + "/input";
  const auto fill = [&](std::size_t size) { std::ofstream(path) << std::string(size, 'x'); };
  constexpr std::size_t kMost = (2u << 20) - 97 - 8 - (8 + 3) - (1 + 8) - 4 - 1;
  fill(kMost);
  CHECK(why_not(path).empty());
  fill(kMost + 1);
  CHECK(why_not(path) == "the input is too large: 1 bytes over what a request may have (2097152)");
  fill(3u << 20);
  CHECK(contains(why_not(path), "is too large"));
  CHECK(contains(why_not("/dev/zero"), "is too large"));
}

TEST_CASE("a file that cannot be read is named") {
  TemporaryDirectory directory;
  CHECK(contains(why_not(directory.path + "/none"), "cannot open `" + directory.path + "/none`: No such file"));
  CHECK(contains(why_not(directory.path), "cannot read"));
}

TEST_CASE("tokens alone can be too large") {
  Request request;
  request.argv = {std::string(2u << 20, 'x')};
  CHECK_THROWS_AS(check_size(test::test_session(), request), Failure);
}
