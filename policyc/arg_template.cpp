#include "policyc/arg_template.hpp"

#include <ArgTemplateLexer.h>
#include <ArgTemplateParser.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "policyc/suggest.hpp"
#include "policyc/text.hpp"

namespace x0x::policyc {

namespace {

using grammar::ArgTemplateLexer;
using grammar::ArgTemplateParser;

constexpr std::string_view kUrlPath = "<URL_PATH>";
constexpr std::size_t kCachedShapes = 1024;
constexpr std::size_t kLongestCachedShape = 128;

struct Lexeme {
  std::size_t type = 0;
  std::size_t first = 0, count = 0;  // code points of the shape
  std::string text;
};

// What the grammar says about a shape.
struct Reading {
  Token::Kind kind = Token::Kind::literal;
  std::vector<Lexeme> lexemes;
  bool legal = true;
};

// Text outside the brackets is opaque to the grammar, so each run of it becomes one letter. Tokens that
// differ only there share one shape, and the grammar reads each shape once.
struct Shape {
  std::string text;
  std::vector<std::size_t> runs;  // code points of each run, in order
};

Shape shape_of(std::string_view token) {
  Shape shape;
  for (std::size_t at = 0; at < token.size();) {
    const std::size_t bracket = std::min(token.find_first_of("<>", at), token.size());
    if (bracket > at) {
      shape.text += '_';
      shape.runs.push_back(count_code_points(token.substr(at, bracket - at)));
      at = bracket;
      continue;
    }
    const std::size_t end = token.find_first_of("<>", at + 1);
    const bool closed = token[at] == '<' && end != std::string_view::npos && token[end] == '>';
    const std::size_t next = closed ? end + 1 : at + 1;
    shape.text += token.substr(at, next - at);
    at = next;
  }
  return shape;
}

Reading read_shape(const std::string& shape) {
  antlr4::ANTLRInputStream input(shape);
  ArgTemplateLexer lexer(&input);
  antlr4::CommonTokenStream tokens(&lexer);
  ArgTemplateParser parser(&tokens);
  parser.removeErrorListeners();  // they print; the lexemes tell us more than the message would
  auto* argument = parser.argument();

  Reading reading;
  reading.legal = parser.getNumberOfSyntaxErrors() == 0;
  if (dynamic_cast<ArgTemplateParser::IntegerContext*>(argument) != nullptr) reading.kind = Token::Kind::integer;
  if (dynamic_cast<ArgTemplateParser::UrlPathContext*>(argument) != nullptr) reading.kind = Token::Kind::url_path;
  tokens.fill();
  for (antlr4::Token* token : tokens.getTokens()) {
    if (token->getType() == antlr4::Token::EOF) break;
    const std::size_t first = token->getStartIndex();
    reading.lexemes.push_back({token->getType(), first, token->getStopIndex() - first + 1, token->getText()});
  }
  return reading;
}

// Names people try first, and what they mean here.
std::string_view meant_template(std::string_view name) {
  static constexpr std::array<std::string_view, 2> kTemplates = {"INT", "URL_PATH"};
  static constexpr std::array<std::string_view, 6> kNumbers = {"INTEGER", "NUMBER", "NUM", "UINT", "DIGITS", "COUNT"};
  static constexpr std::array<std::string_view, 5> kPaths = {"PATH", "URL", "URLPATH", "FILE", "URI_PATH"};
  if (const auto near = nearest(name, kTemplates)) return *near;
  if (nearest(name, kPaths)) return "URL_PATH";
  if (nearest(name, kNumbers)) return "INT";
  return {};
}

ArgProblem named_problem(const Lexeme& lexeme) {
  const std::string name = lexeme.text.substr(1, lexeme.text.size() - 2);
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (upper == "INT" || upper == "URL_PATH")
    return {Kind::template_case, 0, 0, fmt::format("template {} is not in upper case", quote(lexeme.text)),
            fmt::format("write `<{}>`", upper)};
  const std::string_view meant = meant_template(name);
  return {Kind::unknown_template, 0, 0, fmt::format("unknown template {}", quote(lexeme.text)),
          meant.empty() ? "the templates are `<INT>` and `<URL_PATH>`; everything else is written out"
                        : fmt::format("did you mean `<{}>`?", meant)};
}

std::optional<ArgProblem> problem_of(const Reading& reading, std::size_t index) {
  const Lexeme& lexeme = reading.lexemes[index];
  const bool last = index + 1 == reading.lexemes.size();
  switch (lexeme.type) {
    case ArgTemplateLexer::NAMED:
      return named_problem(lexeme);
    case ArgTemplateLexer::OPEN:
    case ArgTemplateLexer::CLOSE:
      return ArgProblem{Kind::stray_angle_bracket, 0, 0, fmt::format("stray `{}`", lexeme.text),
                        "`<` and `>` only spell the templates `<INT>` and `<URL_PATH>`; no request may hold them"};
    case ArgTemplateLexer::INT:
      if (reading.lexemes.size() == 1) return std::nullopt;
      return ArgProblem{Kind::int_not_alone, 0, 0, "`<INT>` must be a whole token",
                        "only `<URL_PATH>` may have text before it; pass the number as an argument of its own"};
    case ArgTemplateLexer::URL_PATH:
      if (last) return std::nullopt;
      return ArgProblem{Kind::url_path_not_last, 0, 0, "`<URL_PATH>` must be the end of its token",
                        "text may stand before it, never after it"};
    default:
      return std::nullopt;
  }
}

// Puts the problems of a shape back where they are in the token.
std::vector<ArgProblem> problems_of(const Reading& reading, const Shape& shape) {
  std::vector<ArgProblem> problems;
  std::size_t at = 0;
  auto run = shape.runs.begin();
  for (std::size_t i = 0; i < reading.lexemes.size(); ++i) {
    const Lexeme& lexeme = reading.lexemes[i];
    const std::size_t count = lexeme.type == ArgTemplateLexer::TEXT ? *run++ : lexeme.count;
    if (auto problem = problem_of(reading, i)) {
      problem->first = at;
      problem->count = count;
      problems.push_back(std::move(*problem));
    }
    at += count;
  }
  return problems;
}

}  // namespace

struct ArgReader::Grammar {
  std::unordered_map<std::string, Reading> known;
  Reading latest;

  const Reading& read(const std::string& shape) {
    if (const auto found = known.find(shape); found != known.end()) return found->second;
    latest = read_shape(shape);
    if (known.size() >= kCachedShapes || shape.size() > kLongestCachedShape) return latest;
    return known.emplace(shape, latest).first->second;
  }
};

ArgReader::ArgReader() = default;
ArgReader::~ArgReader() = default;

Arg ArgReader::read(std::string_view token) {
  if (token.find_first_of("<>") == std::string_view::npos) return {Token::Kind::literal, token, {}};
  if (!grammar_) grammar_ = std::make_unique<Grammar>();
  const Shape shape = shape_of(token);
  const Reading& reading = grammar_->read(shape.text);
  Arg arg{reading.kind, {}, {}};
  if (!reading.legal) {
    arg.kind = Token::Kind::literal;
    arg.text = token;
    arg.problems = problems_of(reading, shape);
  } else if (reading.kind == Token::Kind::url_path) {
    arg.text = token.substr(0, token.size() - kUrlPath.size());
  }
  return arg;
}

}  // namespace x0x::policyc
