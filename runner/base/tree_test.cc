// SPDX-License-Identifier: Apache-2.0
#include "base/tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"

TEST_CASE("a tree is removed, however its directories are closed") {
  char name[] = "/tmp/tree-test.XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  std::string top = name;
  REQUIRE(sys::MakeDirectories(top + "/a/b/c").ok());
  REQUIRE(sys::WriteFile(top + "/a/b/c/file", "text", 0400).ok());
  REQUIRE(sys::WriteFile(top + "/kept", "text", 0600).ok());
  REQUIRE(::symlink("../kept", (top + "/a/link").c_str()) == 0);
  REQUIRE(::chmod((top + "/a/b/c").c_str(), 0) == 0);   // As overlayfs makes its own.
  REQUIRE(::chmod((top + "/a/b").c_str(), 0555) == 0);  // As Go's module cache has.
  Result<Fd> parent = sys::Open(top, O_RDONLY | O_DIRECTORY);
  REQUIRE(parent.ok());
  CHECK(sys::RemoveTree(parent.value().get(), "a").ok());
  Result<std::vector<std::string>> names = sys::DirectoryNames(parent.value().get());
  REQUIRE(names.ok());
  CHECK(names.value() == std::vector<std::string>{"kept"});
  REQUIRE(sys::MakeDirectories(top + "/above/b/c").ok());
  CHECK(sys::RemoveTree(parent.value().get(), "above/b").ok());
  CHECK(::rmdir((top + "/above").c_str()) == 0);
  REQUIRE(::symlink(".", (top + "/link").c_str()) == 0);
  CHECK_FALSE(sys::RemoveTree(parent.value().get(), "link/kept").ok());
  REQUIRE(::unlink((top + "/link").c_str()) == 0);
  Status again = sys::RemoveTree(parent.value().get(), "a");
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().code == Code::kNotFound);
  CHECK(sys::RemoveTree(parent.value().get(), "kept").ok());
  CHECK(::rmdir(name) == 0);
}
