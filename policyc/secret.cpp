#include "policyc/secret.hpp"

#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "policyc/user_error.hpp"

namespace x0x::policyc {

SecretBytes::SecretBytes(std::size_t size) : size_(size) {
  start_crypto();
  data_ = static_cast<std::uint8_t*>(sodium_malloc(size));
  if (data_ == nullptr) throw UserError("not enough memory to keep a secret in");
  sodium_memzero(data_, size);
}

SecretBytes::~SecretBytes() {
  sodium_free(data_);  // wipes first
}

void SecretBytes::shorten(std::size_t size) {
  if (size >= size_) return;
  sodium_memzero(data_ + size, size_ - size);
  size_ = size;
}

void start_crypto() {
  if (sodium_init() < 0) throw UserError("libsodium cannot be started on this machine");
}

void forbid_core_dumps() {
  // The resource limit alone does not stop a kernel that pipes core dumps into a program.
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    throw UserError("core dumps cannot be turned off, and one of them could hold the secret key");
}

}  // namespace x0x::policyc
