// Everything that can be wrong with what we are given (schema/faults.hpp), and the Result that carries it.
//
// Nothing here allocates or throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/faults.hpp"

namespace x0x {

using Bytes = std::span<const std::uint8_t>;

#define X0X_NAME(name, message) name,
#define X0X_TEXTS(name, message) {#name, message},
enum class Fault : std::uint32_t { X0X_FAULTS(X0X_NAME) };
inline constexpr const char* kFaultTexts[][2] = {X0X_FAULTS(X0X_TEXTS)};
#undef X0X_NAME
#undef X0X_TEXTS

constexpr const char* fault_name(Fault fault) { return kFaultTexts[static_cast<std::size_t>(fault)][0]; }
constexpr const char* fault_message(Fault fault) { return kFaultTexts[static_cast<std::size_t>(fault)][1]; }

// A value, or the reason there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(value), fault_(Fault::none) {}
  Result(Fault fault) : value_(), fault_(fault) {}

  bool ok() const { return fault_ == Fault::none; }
  Fault fault() const { return fault_; }
  const T& value() const { return value_; }

  // What the next step makes of the value, or still the reason there is none.
  auto then(auto step) const { return ok() ? step(value_) : decltype(step(value_))(fault_); }

 private:
  T value_;
  Fault fault_;
};

}  // namespace x0x
