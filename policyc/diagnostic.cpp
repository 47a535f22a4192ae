#include "policyc/diagnostic.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace x0x::policyc {

namespace {

constexpr KindInfo kKinds[] = {
#define X(code, kind, name, summary) {Kind::kind, #code, name, summary},
    X0X_DIAGNOSTIC_KINDS(X)
#undef X
};

}  // namespace

std::span<const KindInfo> all_kinds() { return kKinds; }

const KindInfo& info(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

void Diagnostics::report(Kind kind, Span span, std::string message, std::string help) {
  const Severity severity = info(kind).severity();
  if (severity == Severity::error) ++errors_;
  all_.push_back({kind, severity, span, std::move(message), std::move(help)});
}

void Diagnostics::sort() {
  std::stable_sort(all_.begin(), all_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.span.line, a.span.column) < std::tie(b.span.line, b.span.column);
  });
}

void Diagnostics::promote_warnings() {
  for (Diagnostic& diagnostic : all_) diagnostic.severity = Severity::error;
  errors_ = all_.size();
}

}  // namespace x0x::policyc
