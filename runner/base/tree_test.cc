// SPDX-License-Identifier: Apache-2.0
#include "base/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

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

TEST_CASE("a directory is removed in little memory, however many names it has") {
  constexpr int kNames = 50'000;
  constexpr long kKibMax = 6 * 1024;  // All names together take 14 MiB.
  char name[] = "/tmp/tree-test.XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  Result<Fd> top = sys::Open(name, O_RDONLY | O_DIRECTORY);
  REQUIRE(top.ok());
  REQUIRE(::mkdirat(top.value().get(), "many", 0700) == 0);
  Result<Fd> many = sys::OpenAt(top.value().get(), "many", O_RDONLY | O_DIRECTORY);
  REQUIRE(many.ok());
  for (int i = 0; i < kNames; ++i) {
    const std::string file = std::string(230, 'x') + std::to_string(i);
    REQUIRE(::mknodat(many.value().get(), file.c_str(), S_IFREG | 0600, 0) == 0);
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    const bool removed = sys::RemoveTree(top.value().get(), "many").ok();
    ::getrusage(RUSAGE_SELF, &after);
#if defined(__SANITIZE_ADDRESS__)
    after = before;  // It keeps what was freed.
#endif
    ::_exit(!removed ? 1 : after.ru_maxrss - before.ru_maxrss > kKibMax ? 2 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(::rmdir(name) == 0);
}

mode_t ModeOf(const std::string& path) {
  struct stat st {};
  REQUIRE(::stat(path.c_str(), &st) == 0);
  return st.st_mode & 07777;
}

TEST_CASE("the mode of a directory is changed, and not that of what a link leads to") {
  char name[] = "/tmp/tree-test.XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string top = name;
  REQUIRE(sys::MakeDirectories(top + "/closed").ok());
  REQUIRE(::chmod((top + "/closed").c_str(), 0) == 0);
  REQUIRE(sys::WriteFile(top + "/file", "text", 0600).ok());
  REQUIRE(::symlink("file", (top + "/link").c_str()) == 0);
  REQUIRE(::symlink("closed", (top + "/other").c_str()) == 0);
  const Fd parent = sys::Open(top, O_RDONLY | O_DIRECTORY).value();
  for (const char* refused : {"link", "other", "file"}) {
    CHECK_FALSE(sys::ChangeDirectoryMode(parent.get(), refused, 04777).ok());
  }
  CHECK(ModeOf(top + "/file") == 0600);
  CHECK(ModeOf(top + "/closed") == 0);
  CHECK(sys::ChangeDirectoryMode(parent.get(), "closed", 0750).ok());
  CHECK(ModeOf(top + "/closed") == 0750);
  const Fd above = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
  CHECK(sys::RemoveTree(above.get(), top.substr(5)).ok());
}

TEST_CASE("a tree whose directories become links meanwhile is removed, and nothing else changes") {
  char name[] = "/tmp/tree-test.XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string top = name;
  REQUIRE(sys::WriteFile(top + "/kept", "text", 0600).ok());
  const Fd parent = sys::Open(top, O_RDONLY | O_DIRECTORY).value();
  std::atomic<bool> ends = false;
  std::atomic<int> exchanges = 0;
  const std::string directory = top + "/tree/closed";
  const std::string link = top + "/aside/link";
  REQUIRE(sys::MakeDirectories(top + "/aside").ok());
  std::thread other([&] {
    while (!ends) {
      exchanges +=
          ::renameat2(AT_FDCWD, directory.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) == 0;
    }
  });
  for (int i = 0; i < 1000; ++i) {
    // Any of these may fail: something was exchanged just then.
    (void)sys::RemoveTree(parent.get(), "aside/link");
    if (::symlink("../kept", link.c_str()) != 0) continue;
    (void)::mkdir((top + "/tree").c_str(), 0700);
    (void)::mkdir(directory.c_str(), 0);
    for (int again = 0; again < 2; ++again) (void)sys::RemoveTree(parent.get(), "tree");
    if (ModeOf(top + "/kept") != 0600) break;
  }
  ends = true;
  other.join();
  CHECK(exchanges > 0);
  CHECK(ModeOf(top + "/kept") == 0600);
  const Fd above = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
  CHECK(sys::RemoveTree(above.get(), top.substr(5)).ok());
}
