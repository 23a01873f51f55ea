// SPDX-License-Identifier: Apache-2.0
#include "sandbox/tree_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "base/skip.h"
#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

// An original with one of each kind, and an empty place beside it.
struct Trees {
  std::string top = "/var/tmp/copy-test.XXXXXX";
  Trees() {
    REQUIRE(::mkdtemp(top.data()) != nullptr);
    REQUIRE(sys::MakeDirectories(top + "/from/closed/inside").ok());
    REQUIRE(sys::MakeDirectories(top + "/to").ok());
    REQUIRE(sys::WriteFile(top + "/from/file", std::string(3 << 20, 'x'), 0640).ok());
    REQUIRE(sys::WriteFile(top + "/from/closed/inside/run", "#!/bin/sh\n", 0755).ok());
    REQUIRE(::chmod((top + "/from/closed/inside/run").c_str(), 04755) == 0);
    REQUIRE(::symlink("/etc/passwd", (top + "/from/link").c_str()) == 0);
    REQUIRE(::mkfifo((top + "/from/pipe").c_str(), 0600) == 0);
    REQUIRE(::chmod((top + "/from/closed").c_str(), 0555) == 0);
    timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 7}};
    REQUIRE(::utimensat(AT_FDCWD, (top + "/from/file").c_str(), times, 0) == 0);
  }
  ~Trees() {
    Result<Fd> parent = sys::Open("/var/tmp", O_RDONLY | O_DIRECTORY);
    if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), top.substr(9));
  }
  Result<CopySum> Copy(const CopyLimits& limits, std::optional<Owner> owner = {},
                       const CopyProgress& progress = LogCopying()) const {
    Result<Fd> from = sys::Open(top + "/from", O_RDONLY | O_DIRECTORY);
    Result<Fd> to = sys::Open(top + "/to", O_RDONLY | O_DIRECTORY);
    REQUIRE(from.ok());
    REQUIRE(to.ok());
    return CopyTree(from.value().get(), to.value().get(), limits, owner, progress);
  }
  struct stat At(const std::string& name) const {
    struct stat st {};
    REQUIRE(::lstat((top + "/" + name).c_str(), &st) == 0);
    return st;
  }
};

constexpr CopyLimits kEnough{64 << 20, 1000};

TEST_CASE("a copy tells how far it is, and a short one does not") {
  CopyProgress progress;
  std::vector<int64_t> told;
  progress.tell = [&told](const CopySum& sum) { told.push_back(sum.bytes); };
  progress.every = std::chrono::hours(1);
  REQUIRE(Trees().Copy(kEnough, {}, progress).ok());
  CHECK(told.empty());
  progress.every = std::chrono::milliseconds(0);
  REQUIRE(Trees().Copy(kEnough, {}, progress).ok());
  REQUIRE_FALSE(told.empty());
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back() == (3 << 20) + 10);
}

TEST_CASE("a directory that is left out is not in the copy, and a long path is cut") {
  Trees trees;
  Fd closed = sys::Open(trees.top + "/from/closed", O_RDONLY | O_DIRECTORY).value();
  CopyLimits limits = kEnough;
  limits.leaves_out = closed.get();
  Result<CopySum> sum = trees.Copy(limits);
  REQUIRE(sum.ok());
  CHECK(sum.value().files == 3);  // Not the directory and what is in it.
  CHECK(::access((trees.top + "/to/closed").c_str(), F_OK) != 0);
  CHECK(::access((trees.top + "/to/file").c_str(), F_OK) == 0);

  Trees deep;
  std::string path = deep.top + "/from";
  for (int i = 0; i < 40; ++i) path += "/directory";
  REQUIRE(sys::MakeDirectories(path).ok());
  const Error error = deep.Copy({64 << 20, 20}).error();
  CHECK(error.what.starts_with("directory/directory/"));
  CHECK(error.what.size() < 250);
}

TEST_CASE("a tree's copy has the same contents and permissions, and inodes of its own") {
  Trees trees;
  Result<CopySum> sum = trees.Copy(kEnough);
  REQUIRE(sum.ok());
  CHECK(sum.value().files == 6);
  CHECK(sum.value().bytes == (3 << 20) + 10);
  CHECK(sum.value().left_out == 1);
  struct stat was = trees.At("from/file");
  struct stat is = trees.At("to/file");
  CHECK(is.st_ino != was.st_ino);
  CHECK(is.st_mode == was.st_mode);
  CHECK(is.st_mtim.tv_sec == was.st_mtim.tv_sec);
  CHECK(is.st_mtim.tv_nsec == was.st_mtim.tv_nsec);
  CHECK(sys::ReadFile(trees.top + "/to/file", 4 << 20).value() ==
        sys::ReadFile(trees.top + "/from/file", 4 << 20).value());
  CHECK(sys::ReadLink(trees.top + "/to/link").value() == "/etc/passwd");
  CHECK((trees.At("to/closed").st_mode & 07777) == 0555);
  CHECK((trees.At("to/closed/inside/run").st_mode & 07777) == 0755);  // No longer set-user-id.
  CHECK(::access((trees.top + "/to/pipe").c_str(), F_OK) != 0);
}

TEST_CASE("a copy stops at its limits") {
  Trees trees;
  CopyLimits limits = kEnough;
  SECTION("bytes") { limits.bytes_max = 3 << 20; }
  SECTION("files") { limits.files_max = 5; }
  Result<CopySum> sum = trees.Copy(limits);
  REQUIRE_FALSE(sum.ok());
  CHECK(sum.error().code == Code::kUnsupported);
}

TEST_CASE("root gives a copy to whom it is for") {
  if (::geteuid() != 0) SKIP("root: only root can give files away");
  Trees trees;
  REQUIRE(trees.Copy(kEnough, Owner{1234, 5678}).ok());
  for (const char* name : {"to/file", "to/link", "to/closed", "to/closed/inside/run"}) {
    CHECK(trees.At(name).st_uid == 1234);
    CHECK(trees.At(name).st_gid == 5678);
  }
}

}  // namespace
}  // namespace sandbox
