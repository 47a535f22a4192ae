// Memory for passwords and keys: locked, fenced by guard pages, wiped when it goes, absent from core dumps.
//
// tests/policyc/minisign_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace x0x::policyc {

class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::size_t size);  // zeroes
  SecretBytes(SecretBytes&& other) noexcept { *this = std::move(other); }
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes();

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::uint8_t> span() { return {data_, size_}; }
  std::span<const std::uint8_t> span() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  // Forgets the end of the buffer; what is cut off is wiped now.
  void shorten(std::size_t size);

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Makes libsodium ready. Cheap when it is already; called by everything here that needs it.
void start_crypto();

// From here on this process leaves no core dump. Called before the first secret is read.
void forbid_core_dumps();

}  // namespace x0x::policyc
