// SPDX-License-Identifier: Apache-2.0
#include "change/raw/raw_changes.h"

#include "change/test_tree.h"

namespace change {
namespace {

// "created path=content", in the order of the walk, and at the end "all" or "not all".
std::vector<std::string> List(ChangedTree tree, const TestTree& upper, const TestTree& checkout,
                              const RawLimits& limits = {}) {
  Result<Fd> fd = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.ok());
  tree.fd = fd.value().get();
  std::vector<std::string> lines;
  Result<bool> all =
      ListRawChanges(tree, checkout.root(), limits, [&](const RawChange& change) -> Status {
        constexpr const char* kKinds[] = {"created", "modified", "deleted"};
        lines.push_back(std::string(kKinds[static_cast<int>(change.kind)]) + " " + change.path +
                        (change.content ? "=" + *change.content : ""));
        return Ok();
      });
  REQUIRE(all.ok());
  std::sort(lines.begin(), lines.end());
  lines.emplace_back(all.value() ? "all" : "not all");
  return lines;
}

using Lines = std::vector<std::string>;

TEST_CASE("No file of the agent's making hides another from the list of raw changes") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("kept", "same");
  checkout.Write("gone", "x");
  checkout.Write(".git/config", "[core]\n");
  upper.Write("kept", "same");
  upper.Whiteout("gone");
  upper.Write(".gitignore", "*\n");
  upper.Write("hidden", "secret");
  upper.Write(".gitattributes", "*.txt working-tree-encoding=UTF-16LE\n");
  upper.Write("a.txt", "secret");
  upper.Write(".git/hooks/pre-commit", "evil");
  upper.Write("inner/.git/HEAD", "x");
  upper.Link("link", "/etc");
  REQUIRE(::mkfifo(upper.At("pipe").c_str(), 0600) == 0);
  CHECK(List({-1}, upper, checkout) ==
        Lines{"created .git/hooks/pre-commit=evil",
              "created .gitattributes=*.txt working-tree-encoding=UTF-16LE\n",
              "created .gitignore=*\n", "created a.txt=secret", "created hidden=secret",
              "created inner/.git/HEAD=x", "created link=/etc", "created pipe", "deleted gone",
              "all"});
}

TEST_CASE("What exceeds a limit is named without its content, or makes the list incomplete") {
  TestTree upper;
  TestTree checkout;
  upper.Write("a", "12345");
  upper.Write("b", "12");
  RawLimits limits;
  limits.file_bytes_max = 4;
  CHECK(List({-1}, upper, checkout, limits) == Lines{"created a", "created b=12", "all"});
  limits.changes_max = 1;
  CHECK(List({-1}, upper, checkout, limits) == Lines{"created a", "not all"});
}

TEST_CASE("In a copy, files that the agent was given are changed only if it changed them") {
  TestTree copy;
  TestTree checkout;
  for (const char* name : {"config", "kept", "changed"}) checkout.Write(name, "theirs");
  copy.Write("config", "given");
  copy.Write("kept", "theirs");
  copy.Write("changed", "theirs");
  ChangedTree tree{-1};
  tree.copied = timespec{};
  tree.replaced = {{"config", "given"}, {"changed", "given"}};
  CHECK(List(tree, copy, checkout) == Lines{"modified changed=theirs", "all"});
  // A copy without anything of the checkout says nothing.
  TestTree empty;
  CHECK(List(tree, empty, checkout) == Lines{"not all"});
}

}  // namespace
}  // namespace change
