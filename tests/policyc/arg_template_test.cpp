#include "policyc/arg_template.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace x0x::policyc {
namespace {

// "unknown-template 1+5" for each problem.
std::string problems(std::string_view token) {
  ArgReader reader;
  std::string all;
  for (const ArgProblem& p : reader.read(token).problems)
    all += fmt::format("{}{} {}+{}", all.empty() ? "" : ", ", info(p.kind).name, p.first, p.count);
  return all;
}

std::string help(std::string_view token) {
  ArgReader reader;
  return reader.read(token).problems.at(0).help;
}

TEST_CASE("the legal shapes") {
  ArgReader reader;
  CHECK(reader.read("plain").kind == Token::Kind::literal);
  CHECK(reader.read("plain").text == "plain");
  CHECK(reader.read("").kind == Token::Kind::literal);
  CHECK(reader.read("<INT>").kind == Token::Kind::integer);
  CHECK(reader.read("<INT>").text.empty());
  CHECK(reader.read("<URL_PATH>").kind == Token::Kind::url_path);
  CHECK(reader.read("<URL_PATH>").text.empty());
  const Arg arg = reader.read("http://h\xc3\xa9:1<URL_PATH>");
  CHECK(arg.kind == Token::Kind::url_path);
  CHECK(arg.text == "http://h\xc3\xa9:1");
  CHECK(arg.problems.empty());
}

TEST_CASE("every mistake has its kind and its place") {
  CHECK(problems("<FOO>") == "unknown-template 0+5");
  CHECK(problems("ab<FOO>") == "unknown-template 2+5");
  CHECK(problems("<>") == "unknown-template 0+2");
  CHECK(problems("<int>") == "template-case 0+5");
  CHECK(problems("x<Url_Path>") == "template-case 1+10");
  CHECK(problems("n<INT>") == "int-not-alone 1+5");
  CHECK(problems("<INT>n") == "int-not-alone 0+5");
  CHECK(problems("<INT><INT>") == "int-not-alone 0+5, int-not-alone 5+5");
  CHECK(problems("<URL_PATH>x") == "url-path-not-last 0+10");
  CHECK(problems("<URL_PATH><URL_PATH>") == "url-path-not-last 0+10");
  CHECK(problems("<INT><URL_PATH>") == "int-not-alone 0+5");
  CHECK(problems("a<b") == "stray-angle-bracket 1+1");
  CHECK(problems("a>b") == "stray-angle-bracket 1+1");
  CHECK(problems("<<INT>") == "stray-angle-bracket 0+1, int-not-alone 1+5");
  CHECK(problems("a<b<c>d>e") == "stray-angle-bracket 1+1, unknown-template 3+3, stray-angle-bracket 7+1");
  CHECK(problems("\xc3\xa9\xe4\xb8\xad<X\xc3\xa9>") == "unknown-template 2+4");
}

TEST_CASE("near misses are named") {
  CHECK(help("<INTEGER>") == "did you mean `<INT>`?");
  CHECK(help("<UINT>") == "did you mean `<INT>`?");
  CHECK(help("<URLPATH>") == "did you mean `<URL_PATH>`?");
  CHECK(help("<PATH>") == "did you mean `<URL_PATH>`?");
  CHECK(help("<ANYTHING>").find("the templates are") == 0);
  CHECK(help("<int>") == "write `<INT>`");
}

TEST_CASE("tokens that share a shape keep their own text and places") {
  ArgReader reader;
  CHECK(reader.read("aa<URL_PATH>").text == "aa");
  CHECK(reader.read("bbbb<URL_PATH>").text == "bbbb");
  CHECK(reader.read("aa<X>").problems.at(0).first == 2);
  CHECK(reader.read("bbbb<X>").problems.at(0).first == 4);
  const std::string long_name = "<" + std::string(5000, 'N') + ">";
  CHECK(reader.read(long_name).problems.at(0).count == 5002);
}

// The grammar against a plain reading of the rules, on every token of up to six pieces.
TEST_CASE("exactly the legal shapes are accepted") {
  constexpr std::string_view kPieces[] = {"x", "<INT>", "<URL_PATH>", "<N>", "<", ">"};
  ArgReader reader;
  for (std::size_t code = 0; code < 6 * 6 * 6 * 6; ++code) {
    std::string token;
    for (std::size_t rest = code; rest > 0; rest /= 6) token += kPieces[rest % 6];
    const std::size_t brackets = token.find_first_of("<>");
    const bool url = token.ends_with("<URL_PATH>") && brackets == token.size() - 10;
    const bool legal = brackets == std::string::npos || token == "<INT>" || url;
    CAPTURE(token);
    CHECK(reader.read(token).problems.empty() == legal);
  }
}

}  // namespace
}  // namespace x0x::policyc
