#include "policyc/audit_record.hpp"

#include <sodium.h>

#include <algorithm>
#include <charconv>

namespace x0x::policyc {

namespace {

constexpr std::size_t kTimeBytes = 24;  // 2026-12-18T00:00:00.000Z
constexpr std::size_t kUuidBytes = 36;

// Takes from the front of a line; once something is not as it must be, `ok` is false for good.
struct Scanner {
  std::string_view rest;
  bool ok = true;

  bool skip(std::string_view text) {
    if (!rest.starts_with(text)) return false;
    rest.remove_prefix(text.size());
    return true;
  }
  void need(std::string_view text) { ok = skip(text) && ok; }

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    ok = ok && error == std::errc{} && (digits == 1 || rest[0] != '0');
    rest.remove_prefix(digits);
    return value;
  }

  std::string_view up_to_quote() {
    const std::size_t end = std::min(rest.find('"'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end);
    need("\"");
    return text;
  }
};

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

}  // namespace

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * sizeof digest.bytes) return std::nullopt;
  for (std::size_t i = 0; i < sizeof digest.bytes; ++i) {
    const int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

std::string_view digest_hex(const Digest& digest, char (&room)[65]) {
  sodium_bin2hex(room, sizeof room, digest.bytes, sizeof digest.bytes);
  return {room, 64};
}

std::optional<AuditRecord> parse_audit_record(std::string_view line) {
  AuditRecord record;
  Scanner scan{line};
  scan.need("{\"seq\":");
  record.seq = scan.number();
  scan.need(",\"prev\":\"");
  const std::optional<Digest> prev = parse_digest(scan.up_to_quote());
  scan.need(",\"ts\":\"");
  record.ts = scan.up_to_quote();
  scan.need(",\"event\":\"");
  record.event = scan.up_to_quote();
  if (scan.skip(",\"torn_bytes\":")) record.torn_bytes = scan.number();
  if (scan.skip(",\"request_id\":\"")) {
    record.request_id = scan.up_to_quote();
    scan.ok = scan.ok && record.request_id.size() == kUuidBytes;
  }
  const bool ends = scan.rest == "}" || (scan.rest.starts_with(',') && scan.rest.ends_with('}'));
  if (!scan.ok || !prev || record.ts.size() != kTimeBytes || !is_name(record.event) || !ends) return std::nullopt;
  record.prev = *prev;
  // Inside a JSON string every quote has a backslash, so this can only be the field.
  record.spawn_failed =
      record.event == "denial" && scan.rest.find(",\"reason\":\"spawn_failed\"") != std::string_view::npos;
  return record;
}

}  // namespace x0x::policyc
