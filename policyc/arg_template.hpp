// Reads one argv token of a rule with the grammar in grammar/ArgTemplate.g4.
//
// Every `<` and `>` is either part of a template or a problem with a kind and a place.
// tests/policyc/arg_template_test.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policyc/diagnostic.hpp"
#include "policyc/policy.hpp"

namespace x0x::policyc {

struct ArgProblem {
  Kind kind;
  std::size_t first = 0, count = 1;  // code points of the token
  std::string message, help;
};

struct Arg {
  Token::Kind kind = Token::Kind::literal;
  std::string_view text;  // the literal, or what stands before <URL_PATH>
  std::vector<ArgProblem> problems;
};

class ArgReader {
 public:
  ArgReader();
  ~ArgReader();
  ArgReader(const ArgReader&) = delete;
  ArgReader& operator=(const ArgReader&) = delete;

  Arg read(std::string_view token);

 private:
  struct Grammar;
  std::unique_ptr<Grammar> grammar_;  // made when the first template is seen
};

}  // namespace x0x::policyc
