#include "enforcer/siblings.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/table.hpp"

using namespace x0x;
using namespace x0x::blob;
using x0x::test::bytes;

namespace {

struct Child {
  std::uint8_t kind;
  std::string label;
  std::uint32_t width = 1;
};

std::uint32_t width_of(const std::vector<Child>& children) {
  Siblings siblings;
  for (const Child& child : children) siblings.add(child.kind, bytes(child.label), child.width);
  return siblings.width();
}

}  // namespace

TEST_CASE("a token equals one literal only") {
  CHECK(width_of({}) == 1);
  CHECK(width_of({{kKindLiteral, "a"}, {kKindLiteral, "b"}, {kKindLiteral, "c"}}) == 1);
  CHECK(width_of({{kKindLiteral, "a", 3}, {kKindLiteral, "b", 5}}) == 5);
}

TEST_CASE("only a literal of digits is live together with <INT>") {
  CHECK(width_of({{kKindLiteral, "a"}, {kKindInt, ""}}) == 1);
  CHECK(width_of({{kKindLiteral, "0"}, {kKindInt, ""}}) == 1);
  CHECK(width_of({{kKindLiteral, "7"}, {kKindInt, ""}}) == 2);
  CHECK(width_of({{kKindLiteral, "7", 2}, {kKindLiteral, "a", 9}, {kKindInt, "", 3}}) == 9);
}

TEST_CASE("only nested URL prefixes are live together") {
  CHECK(width_of({{kKindUrlPath, "/"}}) == 1);
  CHECK(width_of({{kKindUrlPath, "/"}, {kKindUrlPath, "/a/"}, {kKindUrlPath, "/a/b/"}}) == 3);
  CHECK(width_of({{kKindUrlPath, "h:1/"}, {kKindUrlPath, "h:10/"}, {kKindUrlPath, "h:2/"}}) == 1);
  CHECK(width_of({{kKindUrlPath, "/"}, {kKindUrlPath, "/a/"}, {kKindUrlPath, "/b/"}, {kKindUrlPath, "/b/c/"}}) == 3);
  CHECK(width_of({{kKindUrlPath, "/"}, {kKindUrlPath, "/a-b/"}, {kKindUrlPath, "/a/", 4}, {kKindUrlPath, "/a/b/"}}) ==
        6);
}

TEST_CASE("a literal with a slash is live together with URL prefixes") {
  CHECK(width_of({{kKindLiteral, "/x"}, {kKindUrlPath, "/"}}) == 2);
  CHECK(width_of({{kKindLiteral, "x", 4}, {kKindUrlPath, "/"}}) == 4);
}

TEST_CASE("more than the bound says so instead of overflowing") {
  std::vector<Child> deep;
  for (int i = 1; i <= 20; ++i) deep.push_back({kKindUrlPath, std::string(static_cast<std::size_t>(i), '/')});
  CHECK(width_of(deep) > kMaxWidth);
}

TEST_CASE("which templates a parent has") {
  Siblings siblings;
  CHECK(siblings.templates() == 0);
  siblings.add(kKindLiteral, bytes("x"), 1);
  CHECK(siblings.templates() == 0);
  siblings.add(kKindInt, {}, 1);
  CHECK(siblings.templates() == kTemplateInt);
  siblings.add(kKindUrlPath, bytes("/"), 1);
  CHECK(siblings.templates() == (kTemplateInt | kTemplateUrlPath));
  siblings.clear();
  CHECK(siblings.templates() == 0);
  CHECK(siblings.width() == 1);
}
