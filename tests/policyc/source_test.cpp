#include "policyc/source.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "policyc/text.hpp"
#include "tests/support/scratch.hpp"

namespace x0x::policyc {
namespace {

std::string error_of(const std::string& path) {
  std::string error;
  CHECK_FALSE(load_source(path, error).has_value());
  return error;
}

TEST_CASE("lines and columns lead to bytes and back") {
  const Source source = make_source("f",
                                    "\xef\xbb\xbf"
                                    "a\xc3\xa9z\r\n\nlast");
  CHECK(source.line(1) == "a\xc3\xa9z");
  CHECK(source.line(2).empty());
  CHECK(source.line(3) == "last");
  CHECK(source.line(4).empty());
  CHECK(source.offset_of(1, 3) == 6);
  CHECK(source.offset_of(1, 99) == 7);
  CHECK(source.span_at(6).column == 3);
  CHECK(source.span_at(source.text.size() - 1).line == 3);
  CHECK(source.span_at(source.text.size() - 1).column == 4);
}

TEST_CASE("a file of one line has exact places far from its start") {
  std::string text = "x";
  for (int i = 0; i < 20000; ++i) text += "\xc3\xa9";
  const Source source = make_source("f", text + "Z");
  CHECK(source.span_at(text.size()).column == 20002);
  CHECK(source.offset_of(1, 20002) == text.size());
  CHECK(source.offset_of(1, 10001) == 1 + 2 * 9999);
}

TEST_CASE("every place survives the way there and back, in valid and in broken text") {
  std::string text;
  for (unsigned i = 0; i < 30000; ++i) text += static_cast<char>(i * i % 251);
  const Source source = make_source("f", text);
  for (std::size_t at = 0; at < text.size();) {
    const Span span = source.span_at(at);
    const bool in_line_break = text[at] == '\n' || (text[at] == '\r' && text.substr(at + 1, 1) == "\n");
    if (!in_line_break) CHECK(source.offset_of(span.line, span.column) == at);
    at += decode(text, at).bytes;
  }
}

TEST_CASE("bytes that no TOML file may hold are found where they are") {
  const Source source = make_source("f", "ok\nab\xff\xff\n\xc3\xa9\0x\n");
  REQUIRE(source.bad_bytes.size() == 1);
  CHECK(source.bad_bytes[0].span.line == 2);
  CHECK(source.bad_bytes[0].span.column == 3);
  CHECK(source.bad_bytes[0].value == 0xff);
  const Source nul = make_source("f", std::string("\xc3\xa9\0x", 4));
  REQUIRE(nul.bad_bytes.size() == 1);
  CHECK(nul.bad_bytes[0].span.column == 2);
  CHECK(nul.bad_bytes[0].value == 0);
}

TEST_CASE("what is not a readable regular file is refused with one line") {
  const Scratch scratch;
  CHECK(error_of(scratch.path("absent")).find("No such file") != std::string::npos);
  CHECK(error_of(scratch.path("")).find("it is a directory") != std::string::npos);
  REQUIRE(mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
  CHECK(error_of(scratch.path("pipe")).find("it is a pipe; pass `-`") != std::string::npos);
  CHECK(error_of("/dev/zero").find("it is a device") != std::string::npos);
  CHECK(error_of(scratch.path("a\nb")).find('\n') == std::string::npos);
}

TEST_CASE("a file over the limit is refused, one at the limit is not") {
  const Scratch scratch;
  const std::string path = scratch.put("big", "");
  std::filesystem::resize_file(path, kMaxSourceBytes + 1);
  CHECK(error_of(path).find("larger than 64 MiB") != std::string::npos);
  std::filesystem::resize_file(path, 1000);
  std::string error;
  const auto source = load_source(path, error);
  REQUIRE(source.has_value());
  CHECK(source->text.size() == 1000);
}

}  // namespace
}  // namespace x0x::policyc
