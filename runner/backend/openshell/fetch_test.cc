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

struct Outcome {
  Result<Fetched> status;
  std::string a;      // The content of `a`.
  bool same = false;  // `a` and `b` are one file.
};

// Fetches what `script` prints, which runs in a directory with `a`, its hard link `b`, and a link.
Outcome Fetch(const std::string& script, FetchLimits limits) {
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
  Outcome got{FetchArchive(std::move(child).value(), directory.get(), limits), "", false};
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
    Outcome got = Fetch(std::string(noise) + "exec tar -cf - .", kWithin);
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
  Result<Fetched> packed = Fetch("tar -czf - .", kWithin).status;
  REQUIRE_FALSE(packed.ok());
  CHECK(packed.error().code == Code::kInvalid);
  Result<Fetched> large = Fetch("head -c 3000000 /dev/zero >c; tar -cf - .", kWithin).status;
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().code == Code::kUnsupported);
}

TEST_CASE("Headers do not count, however many files there are") {
  const std::string many = "for i in $(seq 2000); do echo content >f$i; done; ";
  CHECK(Fetch(many + "tar -cf - .", {100'000, Deadline::Never(), -1}).status.ok());
  Result<Fetched> large = Fetch(many + "tar -cf - .", {10'000, Deadline::Never(), -1}).status;
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().code == Code::kUnsupported);
}

TEST_CASE("A file that is larger than the limit is not written, even if it is one hole") {
  Result<Fetched> sparse = Fetch("truncate -s 64M c; tar -cf - c", kWithin).status;
  REQUIRE_FALSE(sparse.ok());
  CHECK(sparse.error().code == Code::kUnsupported);
  CHECK(sparse.error().what.starts_with("c: "));
}

TEST_CASE("A packer that failed says why, and its words decide nothing") {
  for (const char* said : {"Error: it is broken", "tar: ./transport error: Cannot open",
                           "Error: valid authentication credentials"}) {
    Result<Fetched> failed = Fetch(std::string("echo '") + said + "' >&2; exit 2", kWithin).status;
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == Code::kIo);
    CHECK(failed.error().hint.empty());
    CHECK(failed.error().what.find(said) != std::string::npos);
  }
}

TEST_CASE("An archive of which something is missing is taken, and said not to be whole") {
  const std::string pack = "tar -cf - .; ";
  CHECK(Fetch(pack + "exit 0", kWithin).status.value().whole);
  CHECK(Fetch(pack + "exit 1", kWithin).status.value().whole);  // A file changed meanwhile.
  for (const char* end : {"echo 'tar: ./x: Cannot open' >&2; exit 2",
                          "echo 'tar: ./x: changed' >&2; echo 'Error: cut off' >&2; exit 1"}) {
    Outcome got = Fetch(pack + end, kWithin);
    REQUIRE(got.status.ok());
    CHECK(got.a == "content");
    CHECK_FALSE(got.status.value().whole);
    CHECK(got.status.value().said.starts_with("tar: ./x: "));
  }
}

TEST_CASE("A packer that does not end is not waited for") {
  using std::chrono::milliseconds;
  Result<Fetched> late =
      Fetch("exec sleep 1000", {kBytesMax, Deadline::After(milliseconds(100))}).status;
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == Code::kTemporary);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Fd cancel(ends[0]);
  { Fd closed(ends[1]); }
  Result<Fetched> stopped =
      Fetch("exec sleep 1000", {kBytesMax, Deadline::Never(), cancel.get()}).status;
  REQUIRE_FALSE(stopped.ok());
  CHECK(stopped.error().what == "interrupted");
}

}  // namespace
}  // namespace openshell
