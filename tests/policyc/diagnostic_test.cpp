#include "policyc/diagnostic.hpp"

#include <doctest/doctest.h>

#include <set>

namespace x0x::policyc {
namespace {

TEST_CASE("codes and names are unique and well formed") {
  std::set<std::string_view> codes, names;
  for (const KindInfo& kind : all_kinds()) {
    CAPTURE(kind.code);
    CHECK(codes.insert(kind.code).second);
    CHECK(names.insert(kind.name).second);
    CHECK(kind.code.size() == 4);
    CHECK((kind.code[0] == 'E' || kind.code[0] == 'W'));
    CHECK(kind.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos);
    CHECK_FALSE(kind.summary.ends_with('.'));
    CHECK(info(kind.kind).code == kind.code);
  }
}

TEST_CASE("diagnostics are sorted by place and keep the order of one place") {
  Diagnostics diagnostics;
  diagnostics.report(Kind::unknown_key, {2, 1, 1}, "c");
  diagnostics.report(Kind::unknown_key, {1, 9, 1}, "a");
  diagnostics.report(Kind::unknown_table, {1, 9, 1}, "b");
  diagnostics.sort();
  CHECK(diagnostics.all()[0].message == "a");
  CHECK(diagnostics.all()[1].message == "b");
  CHECK(diagnostics.all()[2].message == "c");
  CHECK(diagnostics.errors() == 2);
  CHECK(diagnostics.warnings() == 1);
  diagnostics.promote_warnings();
  CHECK(diagnostics.errors() == 3);
  CHECK(diagnostics.all()[1].severity == Severity::error);
}

}  // namespace
}  // namespace x0x::policyc
