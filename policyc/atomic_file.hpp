// A file appears whole or not at all.
//
// The bytes go to a temporary file in the same directory, are flushed to the disk and take the final name in
// one step; then the directory is flushed. Whatever fails on the way, the old file stays as it was and the
// temporary one is removed. tests/policyc/atomic_file_test.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

namespace x0x::policyc {

enum class Existing { replace, keep };  // keep: an existing file is an error

// `mode` is what the file gets, less the process's umask; it holds from the first byte on. A symbolic link, a
// device or anything else that is not a regular file is refused and left alone: replacing `/dev/stdout` or
// the link to a deployed table is never what was meant.
void write_file_atomically(const std::string& path, std::span<const std::uint8_t> bytes, mode_t mode = 0644,
                           Existing existing = Existing::replace);

}  // namespace x0x::policyc
