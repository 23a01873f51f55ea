// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/disk_watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

// A directory, removed at the end.
struct Place {
  std::string path = "/var/tmp/watch-test.XXXXXX";
  Place() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Place() {
    Result<Fd> parent = sys::Open("/var/tmp", O_RDONLY | O_DIRECTORY);
    if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), path.substr(9));
  }
};

Fd OpenDirectory(const std::string& path) {
  Result<Fd> fd = sys::Open(path, O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.ok());
  return std::move(fd).value();
}

TEST_CASE("the disk is measured as its user leaves it") {
  Place place;
  constexpr int64_t kMax = 1 << 20;
  std::string big(kMax / 2, 'x');
  auto full = [&] { return DiskWatch(OpenDirectory(place.path), kMax).Measure(-1).full; };
  REQUIRE(sys::MakeDirectories(place.path + "/d/d").ok());
  REQUIRE(sys::WriteFile(place.path + "/d/d/a", big, 0600).ok());
  REQUIRE(::link((place.path + "/d/d/a").c_str(), (place.path + "/again").c_str()) == 0);
  CHECK_FALSE(full());  // A file with two names is one.

  SECTION("by size, in a directory closed to its owner") {
    REQUIRE(sys::WriteFile(place.path + "/d/d/b", big, 0600).ok());
    REQUIRE(::chmod((place.path + "/d/d").c_str(), 0) == 0);
    CHECK(full());
    struct stat st {};
    REQUIRE(::stat((place.path + "/d/d").c_str(), &st) == 0);
    CHECK((st.st_mode & 07777) == 0);
  }
  SECTION("by the number of files") {
    for (uint64_t i = 0; i < InodesOf(kMax); ++i) {
      REQUIRE(::mkdir((place.path + "/" + std::to_string(i)).c_str(), 0700) == 0);
    }
    CHECK(full());
  }
  SECTION("a tree too deep to count counts as full") {
    std::string at = place.path;
    for (int i = 0; i < 300; ++i) at += "/d";
    REQUIRE(sys::MakeDirectories(at).ok());
    CHECK(full());
  }
}

TEST_CASE("a deleted file that is still open counts as long as it is") {
  Place place;
  constexpr int64_t kMax = 32 << 20;
  DiskWatch watch(OpenDirectory(place.path), kMax);
  std::string path = place.path + "/deleted";
  Result<Fd> file = sys::Open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  REQUIRE(file.ok());
  REQUIRE(::unlink(path.c_str()) == 0);
  REQUIRE(::posix_fallocate(file.value().get(), 0, 3 * kMax) == 0);
  Fd processes = OpenDirectory("/proc");
  CHECK(watch.Measure(processes.get()).full);
  DiskWatch later(OpenDirectory(place.path), kMax);
  file.value().Close();
  CHECK_FALSE(later.Measure(processes.get()).full);
}

}  // namespace
}  // namespace sandbox
