// A file, pipe or device line by line, however large it is, in a buffer that grows no further than one line may.
// tests/policyc/cmd_audit_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/file_handle.hpp"

namespace x0x::policyc {

struct Line {
  std::string_view text;  // without its newline, until the next call
  bool ended = false;     // it had one
  std::uint64_t number = 0, offset = 0;
};

class LineReader {
 public:
  // Of a longer line only the first `max_line` bytes and one more are given. `-` is standard input. Throws UserError.
  LineReader(const std::string& path, std::size_t max_line);

  bool next(Line& line);  // false: the file has ended

  // What next() will give first, without taking it: the start of the file.
  std::string_view start();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // 0 for a pipe or a device
  std::uint64_t taken() const { return offset_; }
  std::uint64_t device() const { return device_; }
  std::uint64_t inode() const { return inode_; }
  std::int64_t modified() const { return modified_; }  // nanoseconds

 private:
  bool fill();  // false: nothing more to read
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

  std::string path_;
  FileHandle file_;
  std::size_t max_line_;
  std::vector<char> buffer_;
  std::string long_line_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0, number_ = 0, size_ = 0, device_ = 0, inode_ = 0;
  std::int64_t modified_ = 0;
};

}  // namespace x0x::policyc
