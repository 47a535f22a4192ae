#include "policyc/source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "policyc/file_handle.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

constexpr std::size_t kCheckpointBytes = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

std::string too_large(const std::string& shown) {
  return fmt::format("{} is larger than {} MiB, the most a policy file may have", shown, kMaxSourceBytes >> 20);
}

// One byte over the limit is read, so that too large is told from just right; never more.
bool read_all(int fd, std::size_t expected, const std::string& shown, std::string& text, std::string& error) {
  std::size_t size = 0;
  text.resize(std::min(expected, kMaxSourceBytes) + 1);
  while (true) {
    if (size == text.size()) text.resize(std::min(2 * size, kMaxSourceBytes + 1));
    const ssize_t n = read(fd, text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error = fmt::format("cannot read {}: {}", shown, std::strerror(errno));
      return false;
    }
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
    if (size > kMaxSourceBytes) {
      error = too_large(shown);
      return false;
    }
  }
  text.resize(size);
  return true;
}

// 8 when the next eight bytes are ASCII from the space on, 0 otherwise: most of every file, in big steps.
std::size_t plain_bytes(std::string_view text, std::size_t at) {
  if (text.size() - at < sizeof(std::uint64_t)) return 0;
  std::uint64_t word = 0;
  std::memcpy(&word, text.data() + at, sizeof word);
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x80 * kOnes;
  const bool ascii = (word & kHigh) == 0;
  const bool below_space = ((word - 0x20 * kOnes) & kHigh) != 0;  // exact when all bytes are ASCII
  return ascii && !below_space ? sizeof word : 0;
}

void build_index(Source& source) {
  const std::string_view text = source.text;
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  std::size_t next_checkpoint = 0;
  std::uint32_t code_points = 0, column = 1;
  bool nul_seen = false, invalid_seen = false;
  source.line_starts.push_back(static_cast<std::uint32_t>(at));
  while (at < text.size()) {
    if (at >= next_checkpoint) {
      source.checkpoints.push_back({static_cast<std::uint32_t>(at), code_points});
      next_checkpoint = at + kCheckpointBytes;
    }
    if (const std::size_t plain = plain_bytes(text, at); plain > 0) {
      at += plain;
      code_points += static_cast<std::uint32_t>(plain);
      column += static_cast<std::uint32_t>(plain);
      continue;
    }
    const CodePoint c = decode(text, at);
    const auto line = static_cast<std::uint32_t>(source.line_starts.size());
    if (c.value == 0 && !std::exchange(nul_seen, true)) source.bad_bytes.push_back({{line, column, 1}, 0});
    if (!c.valid && !std::exchange(invalid_seen, true))
      source.bad_bytes.push_back({{line, column, 1}, static_cast<std::uint8_t>(c.value)});
    at += c.bytes;
    ++code_points;
    ++column;
    if (c.value == '\n') {
      source.line_starts.push_back(static_cast<std::uint32_t>(at));
      column = 1;
      nul_seen = invalid_seen = false;
    }
  }
}

// The code points before `offset`, counted from the checkpoint before it.
std::uint32_t code_points_before(const Source& source, std::size_t offset) {
  auto after = std::upper_bound(source.checkpoints.begin(), source.checkpoints.end(), offset,
                                [](std::size_t value, const auto& c) { return value < c.offset; });
  if (after == source.checkpoints.begin()) return 0;
  --after;
  std::uint32_t count = after->code_points;
  for (std::size_t at = after->offset; at < offset; ++count) at += decode(source.text, at).bytes;
  return count;
}

}  // namespace

std::size_t Source::line_end(std::uint32_t number) const {
  std::size_t end = number < line_starts.size() ? line_starts[number] : text.size();
  if (number < line_starts.size()) --end;  // its line feed
  if (end > line_starts[number - 1] && text[end - 1] == '\r') --end;
  return end;
}

std::string_view Source::line(std::uint32_t number) const {
  if (number == 0 || number > line_starts.size()) return {};
  const std::size_t start = line_starts[number - 1];
  return std::string_view(text).substr(start, line_end(number) - start);
}

std::size_t Source::offset_of(std::uint32_t line_number, std::uint32_t column) const {
  if (line_number == 0 || line_number > line_starts.size()) return text.size();
  std::size_t at = line_starts[line_number - 1];
  const std::size_t end = line_end(line_number);
  std::uint32_t to_go = column == 0 ? 0 : column - 1;
  if (to_go > kCheckpointBytes) {
    const std::uint32_t target = code_points_before(*this, at) + to_go;
    auto after = std::upper_bound(checkpoints.begin(), checkpoints.end(), target,
                                  [](std::uint32_t value, const auto& c) { return value < c.code_points; });
    --after;  // the first checkpoint counts 0
    if (after->offset > at) {
      at = after->offset;
      to_go = target - after->code_points;
    }
  }
  for (; to_go > 0 && at < end; --to_go) at += decode(text, at).bytes;
  return std::min(at, end);
}

Span Source::span_at(std::size_t offset, std::uint32_t length) const {
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  const auto number = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after - line_starts.begin(), 1));
  const std::size_t start = line_starts[number - 1];
  const std::uint32_t column = code_points_before(*this, offset) - code_points_before(*this, start) + 1;
  return {number, column, length};
}

Source make_source(std::string name, std::string text) {
  Source source;
  source.name = std::move(name);
  source.text = std::move(text);
  build_index(source);
  return source;
}

std::optional<Source> load_source(const std::string& path, std::string& error) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "<stdin>" : path;
  const std::string shown = standard_input ? "standard input" : quote(path, 4096);
  // Non-blocking, so that a pipe nobody writes to is refused instead of waited for.
  const FileHandle file(standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                       : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) {
    error = fmt::format("cannot open {}: {}", shown, std::strerror(errno));
    return std::nullopt;
  }
  if (standard_input ? S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) {
    error = fmt::format("cannot read {}: it is {}", shown, kind_of(info.st_mode));
    if (!S_ISDIR(info.st_mode)) error += "; pass `-` to read standard input";
    return std::nullopt;
  }
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > kMaxSourceBytes) {
    error = too_large(shown);
    return std::nullopt;
  }
  std::string text;
  const std::size_t expected = S_ISREG(info.st_mode) ? static_cast<std::size_t>(info.st_size) : std::size_t{64} << 10;
  if (!read_all(file.get(), expected, shown, text, error)) return std::nullopt;
  return make_source(name, std::move(text));
}

}  // namespace x0x::policyc
