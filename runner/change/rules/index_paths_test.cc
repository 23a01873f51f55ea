// SPDX-License-Identifier: Apache-2.0
// tests/change/index_test.py reads what git writes; here is what it would not write.
#include "change/rules/index_paths.h"

#include <catch2/catch.hpp>

namespace change {
namespace {

std::string Number(uint32_t value, size_t size) {
  std::string bytes;
  while (size-- > 0) bytes += static_cast<char>(value >> (8 * size));
  return bytes;
}

std::string Index(uint32_t version, uint32_t count, const std::string& entries) {
  return "DIRC" + Number(version, 4) + Number(count, 4) + entries;
}

std::string Entry(const std::string& path) {
  std::string entry = std::string(60, 'x') + Number(static_cast<uint32_t>(path.size()), 2) + path;
  return entry + std::string(8 - entry.size() % 8, '\0');
}

using Paths = std::set<std::string>;

TEST_CASE("An index that ends anywhere gives the paths before its end") {
  const std::string whole = Index(2, 3, Entry("a") + Entry("b/long-enough") + Entry("c"));
  CHECK(ReadIndexPaths(whole).paths == Paths{"a", "b/long-enough", "c"});
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(ReadIndexPaths(std::string_view(whole).substr(0, size)).paths.size() < 3);
  }
  const std::string link = "link" + Number(20, 4) + std::string(20, '\x1f');
  CHECK(ReadIndexPaths(whole + "TREE" + Number(2, 4) + "xx" + link).shared.starts_with("1f1f"));
  CHECK(ReadIndexPaths(whole + link.substr(0, 20)).shared.empty());
  CHECK(ReadIndexPaths(Index(2, 0xffffffff, Entry("a"))).paths == Paths{"a"});
}

TEST_CASE("An index of another kind, or with a wrong path, gives nothing of it") {
  CHECK(ReadIndexPaths(Index(5, 1, Entry("a"))).paths.empty());
  CHECK(ReadIndexPaths("DIRD" + Index(2, 1, Entry("a")).substr(4)).paths.empty());
  CHECK(ReadIndexPaths(Index(2, 1, Entry(std::string(5000, 'a')))).paths.empty());
  const std::string facts = std::string(60, 'x') + Number(1, 2);
  const std::string first = facts + std::string("\0ab\0", 4);
  CHECK(ReadIndexPaths(Index(4, 2, first + facts + std::string("\1c\0", 3))).paths ==
        Paths{"ab", "ac"});
  for (const char* dropped : {"\3", "\x80\x80\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    const std::string second = facts + dropped + std::string("c\0", 2);
    CHECK(ReadIndexPaths(Index(4, 2, first + second)).paths == Paths{"ab"});
  }
}

}  // namespace
}  // namespace change
