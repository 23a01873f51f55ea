// SPDX-License-Identifier: Apache-2.0
#include "sandbox/scratch_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"

namespace sandbox {
namespace {

// A place to make scratch directories in, emptied at the end.
struct Place {
  std::string path = "/var/tmp/scratch-test.XXXXXX";
  Place() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Place() {
    Result<Fd> parent = sys::Open("/var/tmp", O_RDONLY | O_DIRECTORY);
    if (parent.ok()) (void)sys::RemoveTree(parent.value().get(), path.substr(9));
  }
  std::vector<std::string> Names() const {
    Result<Fd> fd = sys::Open(path, O_RDONLY | O_DIRECTORY);
    REQUIRE(fd.ok());
    return sys::DirectoryNames(fd.value().get()).value();
  }
};

constexpr auto kFiles = ScratchDirectory::Use::kFiles;

TEST_CASE("a scratch directory is its owner's alone, and gone with its object") {
  Place place;
  {
    Result<ScratchDirectory> made =
        ScratchDirectory::Make({"/nowhere", "/proc", place.path}, ScratchDirectory::Use::kLayers);
    REQUIRE(made.ok());
    struct stat st {};
    REQUIRE(::stat(made.value().path().c_str(), &st) == 0);
    CHECK((st.st_mode & 07777) == 0700);
    CHECK(place.Names().size() == 1);
    REQUIRE(sys::MakeDirectories(made.value().path() + "/a/b").ok());
    REQUIRE(::chmod((made.value().path() + "/a").c_str(), 0) == 0);
    ScratchDirectory moved = std::move(made).value();
    CHECK(place.Names().size() == 1);
  }
  CHECK(place.Names().empty());
}

TEST_CASE("a scratch directory has neighbours as long as other runs have theirs beside it") {
  Place place;
  Result<ScratchDirectory> mine = ScratchDirectory::Make({place.path}, kFiles);
  REQUIRE(mine.ok());
  CHECK_FALSE(mine.value().HasNeighbours());
  {
    Result<ScratchDirectory> other = ScratchDirectory::Make({place.path}, kFiles);
    REQUIRE(other.ok());
    CHECK(mine.value().HasNeighbours());
  }
  CHECK_FALSE(mine.value().HasNeighbours());
  // What a killed run has left, whose lock is free.
  REQUIRE(::mkdir((place.path + "/agentic-ci-scratch.killed").c_str(), 0700) == 0);
  CHECK_FALSE(mine.value().HasNeighbours());
}

TEST_CASE("a place that others cannot come to is not for an agent that is another user") {
  constexpr auto kEntered = ScratchDirectory::Use::kEntered;
  Place place;
  const std::string inner = place.path + "/inner";
  REQUIRE(::mkdir(inner.c_str(), 0755) == 0);
  Result<ScratchDirectory> closed = ScratchDirectory::Make({inner}, kEntered);
  REQUIRE_FALSE(closed.ok());
  CHECK(closed.error().what.find(inner + ": the agent's user cannot enter ") != std::string::npos);
  CHECK(ScratchDirectory::Make({inner}, kFiles).ok());  // The control.
}

TEST_CASE("where nothing serves, every reason is told") {
  Result<ScratchDirectory> made =
      ScratchDirectory::Make({"/proc", "/sys"}, ScratchDirectory::Use::kLayers);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == Code::kUnsupported);
  CHECK(made.error().what.find("/proc: ") != std::string::npos);
  CHECK(made.error().what.find("/sys: ") != std::string::npos);
}

TEST_CASE("runs that begin at once do not sweep away what another is making") {
  Place place;
  std::atomic<int> failed{0};
  std::vector<std::thread> runs;
  for (int run = 0; run < 8; ++run) {
    runs.emplace_back([&] {
      for (int turn = 0; turn < 200; ++turn) {
        Result<ScratchDirectory> made = ScratchDirectory::Make({place.path}, kFiles);
        struct stat st {};
        if (!made.ok() || ::stat(made.value().path().c_str(), &st) != 0) ++failed;
      }
    });
  }
  for (std::thread& run : runs) run.join();
  CHECK(failed == 0);
  CHECK(place.Names().empty());
}

TEST_CASE("what a killed run left is swept, what a living one has is not") {
  Place place;
  pid_t killed = ::fork();
  if (killed == 0) {
    Result<ScratchDirectory> left = ScratchDirectory::Make({place.path}, kFiles);
    ::_exit(left.ok() ? 0 : 1);  // Without its destructor.
  }
  int status = 1;
  REQUIRE(::waitpid(killed, &status, 0) == killed);
  REQUIRE(status == 0);
  REQUIRE(place.Names().size() == 1);
  std::string left = place.Names().front();
  REQUIRE(::mkdir((place.path + "/another's").c_str(), 0700) == 0);

  Result<ScratchDirectory> first = ScratchDirectory::Make({place.path}, kFiles);
  REQUIRE(first.ok());
  Result<ScratchDirectory> second = ScratchDirectory::Make({place.path}, kFiles);
  REQUIRE(second.ok());
  std::vector<std::string> names = place.Names();
  CHECK(names.size() == 3);
  CHECK(std::find(names.begin(), names.end(), left) == names.end());
  CHECK(::access(first.value().path().c_str(), F_OK) == 0);
}

}  // namespace
}  // namespace sandbox
