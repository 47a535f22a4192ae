// Audit logs made by hand, line by line, as the enforcer would write them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "enforcer/verify.hpp"
#include "policyc/hex.hpp"

namespace x0x::policyc {

struct AuditLog {
  std::vector<std::string> lines;
  std::vector<std::string> digests;  // of the records

  static Bytes bytes(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  }
  static std::string hex(const Digest& digest) { return to_hex(digest.bytes); }
  static std::string id(int n) { return fmt::format("{:08x}-0000-4000-8000-000000000000", n); }

  void add(const std::string& event, const std::string& fields = "") {
    const std::size_t seq = digests.size();
    lines.push_back(fmt::format(R"({{"seq":{},"prev":"{}","ts":"2026-11-18T10:00:{:02}.{:03}Z","event":"{}"{}{}}})",
                                seq, seq == 0 ? std::string(64, '0') : digests.back(), seq / 1000 % 60, seq % 1000,
                                event, fields.empty() ? "" : ",", fields));
    digests.push_back(hex(digest_of(bytes(lines.back()))));
  }
  void torn(const std::string& part) { lines.push_back(part + "~"); }
  void session(int n) {
    const std::string request = R"("request_id":")" + id(n) + '"';
    add("request", request + R"(,"argv":["uptime"])");
    add("started", request + R"(,"pid":42)");
    add("exit", request + R"(,"code":0)");
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    return all;
  }
};

}  // namespace x0x::policyc
