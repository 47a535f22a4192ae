// Text for a log or a screen: whatever the values and however small the room, ASCII without control bytes, and
// JSON that means the same unless it is full.
#include "enforcer/json.hpp"

#include <nlohmann/json.hpp>

#include "fuzz/target.hpp"

using namespace x0x;

X0X_FUZZ(json) {
  fuzz::Input in({data, size});
  std::string room(in.below(2048), '\x7f');
  const std::uint64_t number = in.byte() * 0x0101010101010101u;
  const std::size_t half = in.below(256);
  const Bytes first = in.take(half), second = in.take(size);
  Json json(room);
  json.write("{'first':%,'number':%,'second':%,'id':%}", first, number, second, Hex{first});
  for (const char c : json.view()) fuzz::promise(c >= 0x20 && c < 0x7f, "printable ASCII");
  fuzz::promise(json.view().size() <= room.size(), "no more than its room");
  if (json.full()) return 0;
  const auto parsed = nlohmann::json::parse(json.view(), nullptr, false);
  fuzz::promise(!parsed.is_discarded(), "JSON");
  fuzz::promise(parsed["number"] == number, "the same number");
  if (second.data() != nullptr && is_utf8(second))
    fuzz::promise(parsed["second"].get<std::string>() == x0x::as_text(second), "the same text");
  return 0;
}
