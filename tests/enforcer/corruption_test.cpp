// Every truncation and every single-bit flip of a table, as it is and signed afresh. What is not refused must
// be exactly the table the compiler writes for what it says: two byte strings never mean the same.
#include <doctest/doctest.h>

#include "policyc/emit.hpp"
#include "policyc/read_table.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::test;

namespace {

policyc::Policy golden() {
  policyc::Policy source = policy({entry(1, 2,
                                         {{"journalctl", "-n", "<INT>"},
                                          {"journalctl", "-n", "5"},
                                          {"curl", "http://h:1<URL_PATH>"},
                                          {"curl", "http://h:1/x<URL_PATH>"},
                                          {"curl", "http://h:1/x/y"}}),
                                   entry(3, 4, {{"id"}}), entry(1, 2, {{"id"}})});
  source.name = "golden";
  source.expires = 4'000'000'000;
  source.audience = {"web"};
  source.entries[0].description = "ops";
  source.entries[0].commands[0].env = {{"TERM", "dumb"}};
  source.entries[0].commands[0].limits.cpu_secs = 1;
  source.entries[1].commands[0].allow = {{{"id"}, {}}};
  source.entries[1].commands[0].writable = {"/tmp"};
  return source;
}

Fault open_file(const ByteVector& file) {
  const auto verified = verify({file}, trust({TestKey(1)}, 1));
  return verified.ok() ? BlobView::open(verified.value()).fault() : verified.fault();
}

}  // namespace

TEST_CASE("every truncation of a signed file is refused") {
  const ByteVector file = sign(policyc::emit(golden()));
  REQUIRE(open_file(file) == Fault::none);
  for (std::size_t length = 0; length < file.size(); ++length) {
    REQUIRE(open_file(ByteVector(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length))) != Fault::none);
    REQUIRE(open_file(ByteVector(file.begin() + static_cast<std::ptrdiff_t>(file.size() - length), file.end())) !=
            Fault::none);
  }
}

TEST_CASE("every single-bit flip of a signed file is refused, or touches only what nobody trusts") {
  const ByteVector payload = policyc::emit(golden());
  const ByteVector file = sign(payload);
  const std::size_t untrusted_from = payload.size() + 8 + 64;  // global signature and comment: minisign's, not ours
  const std::size_t untrusted_to = file.size() - blob::kTrailerBytes;
  ByteVector flipped = file;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const bool matters = bit / 8 < untrusted_from || bit / 8 >= untrusted_to || bit / 8 == untrusted_from + 64;
    REQUIRE((open_file(flipped) != Fault::none) == matters);
    flipped[bit / 8] = file[bit / 8];
  }
}

TEST_CASE("every truncation of a payload is refused even when signed afresh") {
  const ByteVector payload = policyc::emit(golden());
  for (std::size_t length = 0; length < payload.size(); ++length)
    REQUIRE(open_signed(ByteVector(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(length))).fault !=
            Fault::none);
}

TEST_CASE(
    "every single-bit flip of a payload, signed afresh, is refused or is the canonical table of what it "
    "says") {
  const ByteVector payload = policyc::emit(golden());
  ByteVector flipped = payload;
  std::size_t refused = 0, accepted = 0;
  for (std::size_t bit = 0; bit < payload.size() * 8; ++bit) {
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    if (const OpenTable table = open_signed(flipped); table.fault == Fault::none) {
      REQUIRE(policyc::emit(policyc::read_table(table.view)) == flipped);
      ++accepted;
    } else {
      ++refused;
    }
    flipped[bit / 8] = payload[bit / 8];
  }
  CHECK(refused > accepted * 3);  // most bytes have only one value they may have
  CHECK(accepted > 0);            // and the caps, for one, are free
}
