// SPDX-License-Identifier: Apache-2.0
#include "change/rules/embedded_repository.h"

#include <catch2/catch.hpp>

namespace change {
namespace {

// "directory: path", one for each.
std::string Found(const std::vector<std::string>& written, const DirectoryNames& before = {}) {
  std::string text;
  for (const EmbeddedRepository& one : FindEmbeddedRepositories(written, before)) {
    text += one.directory + ": " + written[one.file] + "\n";
  }
  return text;
}

TEST_CASE("A change that makes a directory a repository is found") {
  CHECK(Found({"docs/HEAD", "docs/config", "docs/objects/keep", "docs/refs/keep"}) ==
        "docs: docs/HEAD\n");
  CHECK(Found({"HEAD", "objects/x", "refs/x"}) == ": HEAD\n");
  CHECK(Found({"a/b/head", "a/b/Objects", "a/b/REF\u017f/x"}) == "a/b: a/b/head\n");
  CHECK(Found({"tree/HEAD", "tree/commondir"}) == "tree: tree/HEAD\n");
}

TEST_CASE("A repository is found whose parts come one after the other") {
  const DirectoryNames before = {{"docs", {"objects", "refs", "guide.md"}}};
  CHECK(Found({"docs/HEAD"}, before) == "docs: docs/HEAD\n");
  CHECK(Found({"docs/refs/x"}, {{"docs", {"HEAD", "objects"}}}) == "docs: docs/refs/x\n");
}

TEST_CASE("A repository that is there is left alone, or found") {
  const DirectoryNames before = {{"test/repo", {"HEAD", "objects", "refs", "config", "hooks"}}};
  CHECK(Found({"test/a.c", "test/repo/description"}, before).empty());
  for (const char* path : {"test/repo/config", "test/repo/hooks/post-checkout", "test/repo/HEAD",
                           "test/repo/objects/aa/b", "test/repo/refs/heads/x"}) {
    CHECK(Found({path}, before) == std::string("test/repo: ") + path + "\n");
  }
}

TEST_CASE("Names that a repository has, too, make none by themselves") {
  CHECK(Found({"src/objects/a.c", "src/refs/b.c", "src/config", "src/hooks/x"}).empty());
  CHECK(Found({"src/HEAD"}).empty());
  CHECK(Found({"a/HEAD", "b/objects/x", "c/refs/y"}).empty());
  CHECK(Found({"src/HEAD", "src/objects/x", "src/refs.c"}).empty());
}

TEST_CASE("The directories to look at are those of which a part is written") {
  CHECK(RepositoryCandidates({"src/a.c", "src/refs/x", "HEAD", "x/hooks/a.c"}) ==
        std::vector<std::string>{"", "src", "x"});
}

}  // namespace
}  // namespace change
