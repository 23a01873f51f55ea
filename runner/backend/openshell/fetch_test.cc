// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/fetch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/sys.h"

namespace openshell {
namespace {

struct Fetched {
  Status status;
  std::string a;      // The content of `a`.
  bool same = false;  // `a` and `b` are one file.
};

// Fetches what `script` prints, which runs in a directory with `a`, its hard link `b`, and a link.
Fetched Fetch(const std::string& script, FetchLimits limits) {
  char top[] = "/tmp/fetch-test-XXXXXX";
  REQUIRE(::mkdtemp(top) != nullptr);
  const std::string from = std::string(top) + "/from";
  const std::string to = std::string(top) + "/to";
  REQUIRE(sys::MakeDirectories(from + "/d").ok());
  REQUIRE(sys::MakeDirectories(to).ok());
  REQUIRE(sys::WriteFile(from + "/a", "content").ok());
  REQUIRE(::link((from + "/a").c_str(), (from + "/b").c_str()) == 0);
  REQUIRE(::symlink("/etc", (from + "/d/link").c_str()) == 0);
  Child::Command command;
  command.argv = {"sh", "-c", script};
  command.directory = from;
  Result<Child> child = Child::Start(ProgramPlaces("/usr/bin:/bin", ""), command);
  REQUIRE(child.ok());
  Fd directory = sys::Open(to, O_RDONLY | O_DIRECTORY).value();
  Fetched got{FetchArchive(std::move(child).value(), directory.get(), limits), "", false};
  if (got.status.ok()) {
    got.a = sys::ReadFile(to + "/a", 100).value();
    got.same = std::filesystem::hard_link_count(to + "/b") == 2;
    CHECK(std::filesystem::read_symlink(to + "/d/link") == "/etc");
  }
  std::filesystem::remove_all(top);
  return got;
}

constexpr int64_t kBytesMax = 1 << 20;
const FetchLimits kWithin{kBytesMax, Deadline::Never(), -1};

TEST_CASE("A packer's warnings do not hold up its archive") {
  for (const char* noise : {"", "head -c 3000000 /dev/zero >&2; "}) {
    Fetched got = Fetch(std::string(noise) + "exec tar -cf - .", kWithin);
    CHECK(got.status.ok());
    CHECK(got.a == "content");
    CHECK(got.same);
  }
  // Nor do those between its bytes.
  CHECK(Fetch("tar -cf ../x . && head -c 600 ../x && head -c 3000000 /dev/zero >&2 && "
              "tail -c +601 ../x",
              kWithin)
            .status.ok());
}

TEST_CASE("An archive is read as it is, and within its limit") {
  Status packed = Fetch("tar -czf - .", kWithin).status;
  REQUIRE_FALSE(packed.ok());
  CHECK(packed.error().code == Code::kInvalid);
  Status large = Fetch("head -c 3000000 /dev/zero >c; tar -cf - .", kWithin).status;
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().code == Code::kUnsupported);
}

TEST_CASE("A packer that failed says why") {
  Status failed = Fetch("echo 'Error: it is broken' >&2; exit 1", kWithin).status;
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().what.find("it is broken") != std::string::npos);
}

TEST_CASE("A packer that does not end is not waited for") {
  using std::chrono::milliseconds;
  Status late = Fetch("exec sleep 1000", {kBytesMax, Deadline::After(milliseconds(100))}).status;
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == Code::kTemporary);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Fd cancel(ends[0]);
  { Fd closed(ends[1]); }
  Status stopped = Fetch("exec sleep 1000", {kBytesMax, Deadline::Never(), cancel.get()}).status;
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().what == "interrupted");
}

}  // namespace
}  // namespace openshell
