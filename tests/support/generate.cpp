#include "tests/support/generate.hpp"

namespace x0x::test {

namespace {

std::size_t below(Random& random, std::size_t n) { return random.below(n); }
bool one_in(Random& random, std::size_t n) { return below(random, n) == 0; }

template <class T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[below(random, from.size())];
}

const std::vector<std::string>& programs() {
  static const std::vector<std::string> all{"a", "ls", "/bin/ls", "/bin/l", "curl"};
  return all;
}

const std::vector<std::string>& patterns() {
  static const std::vector<std::string> all{
      "<INT>",
      "<INT>",
      "<URL_PATH>",
      "/a<URL_PATH>",
      "/a/b<URL_PATH>",
      "/a-b<URL_PATH>",
      "h<URL_PATH>",
      "h/<URL_PATH>",
      "h:1<URL_PATH>",
      "1",
      "12",
      "999999",
      "1000000",
      "0",
      "01",
      "/",
      "/a",
      "/a/b",
      "/a/b/c",
      "h/x",
      "h:1/x",
      "h:10/x",
      "",
      "-n",
      "a b",
      "a",
      "é",
  };
  return all;
}

// Something a token of this kind matches, or nearly.
std::string request_token(Random& random, const policyc::Token& pattern) {
  static const std::vector<std::string> ints{"1", "12", "999999", "1000000", "0", "01", "+1", "1 ", "", "1e5"};
  static const std::vector<std::string> paths{"/",     "/a", "/a/b", "/a/b/c", "//",   "/..",  "/a..",   "/.",
                                              "/a.b.", "a",  "",     "/x y",   "/-_.", "/%2e", "/a/../b"};
  if (pattern.kind == policyc::Token::Kind::integer) return pick(random, ints);
  if (pattern.kind == policyc::Token::Kind::literal) return pattern.text;
  std::string path = pick(random, paths);
  if (one_in(random, 8)) path = "/" + std::string(250 + below(random, 12), one_in(random, 3) ? '/' : 'p');
  return pattern.text + path;
}

}  // namespace

std::size_t Random::below(std::size_t n) {
  if (!given_) return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_);
  if (choices_.empty()) return n - 1;
  const std::size_t chosen = choices_[0] % n;
  choices_ = choices_.subspan(1);
  return chosen;
}

policyc::Policy random_policy(Random& random) {
  policyc::Policy made = policy({});
  made.exec.enabled = !one_in(random, 50);
  if (one_in(random, 10)) made.not_before = 1'799'999'999 + below(random, 3);
  if (one_in(random, 10)) made.expires = 1'800'000'001 + below(random, 2) - (made.not_before ? 0 : 1);
  if (made.not_before && made.expires && *made.not_before >= *made.expires) made.expires.reset();
  made.exec.max_duration_secs = 1 + below(random, 20);
  made.exec.warn_duration_secs = below(random, 30);
  const std::size_t entries = below(random, 5);
  for (std::size_t e = 0; e < entries; ++e) {
    policyc::Entry entry;
    entry.agent = id(static_cast<std::uint8_t>(below(random, 2)));
    entry.machine = id(static_cast<std::uint8_t>(below(random, 2)));
    if (one_in(random, 2)) entry.description = "entry " + std::to_string(e);
    if (one_in(random, 3)) entry.max_duration_secs = 1 + below(random, 10);
    const std::size_t commands = 1 + below(random, 6);
    for (std::size_t c = 0; c < commands; ++c) {
      policyc::Command command;
      if (c > 0 && one_in(random, 3)) {
        command.argv = pick(random, entry.commands).argv;  // shares a beginning, or everything
        if (command.argv.size() > 1 && one_in(random, 2)) command.argv.pop_back();
      } else {
        command.argv.push_back(token(pick(random, programs())));
      }
      while (command.argv.size() < 6 && !one_in(random, 3)) command.argv.push_back(token(pick(random, patterns())));
      if (one_in(random, 6)) command.stdin_allowed = false;
      if (one_in(random, 6)) command.max_stdin_bytes = 1 + below(random, 4);
      if (one_in(random, 6)) command.max_duration_secs = 1 + below(random, 5);
      if (one_in(random, 10)) command.reason = "because";
      entry.commands.push_back(command);
    }
    made.entries.push_back(entry);
  }
  return made;
}

OwnedRequest random_request(Random& random, const policyc::Policy& policy) {
  OwnedRequest request;
  request.agent = id(static_cast<std::uint8_t>(below(random, 2)));
  request.machine = id(static_cast<std::uint8_t>(below(random, 3)));
  if (!policy.entries.empty() && !one_in(random, 10)) {
    const policyc::Entry& entry = pick(random, policy.entries);
    if (!one_in(random, 10)) request.agent = entry.agent, request.machine = entry.machine;
    for (const policyc::Token& pattern : pick(random, entry.commands).argv)
      request.argv.push_back(request_token(random, pattern));
  }
  if (one_in(random, 8)) request.argv.push_back(request_token(random, token(pick(random, patterns()))));
  if (one_in(random, 8) && !request.argv.empty()) request.argv.pop_back();
  if (one_in(random, 8) && !request.argv.empty())
    request.argv[below(random, request.argv.size())] = request_token(random, token(pick(random, patterns())));
  if (one_in(random, 40) && !request.argv.empty()) request.argv.back().push_back(";|&><`$\n"[below(random, 9)]);
  request.cwd_present = one_in(random, 40);
  if (one_in(random, 5)) request.stdin_bytes = below(random, 6);
  if (one_in(random, 20)) request.stdin_bytes = 1'048'576 + below(random, 2);
  if (one_in(random, 5)) request.timeout_ms = static_cast<std::uint32_t>(below(random, 22) * 500 + below(random, 3));
  return request;
}

}  // namespace x0x::test
