#include "enforcer/text.hpp"

namespace x0x {

// The ranges are Unicode's table 3-7.
std::size_t utf8_length(Bytes text, std::size_t i) {
  const std::uint8_t lead = text[i];
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
  if (length > text.size() - i) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    const std::uint8_t low = k > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = k > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[i + k] < low || text[i + k] > high) return 0;
  }
  return length;
}

bool is_utf8(Bytes text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace x0x
