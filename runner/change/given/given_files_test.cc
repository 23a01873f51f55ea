// SPDX-License-Identifier: Apache-2.0
#include "change/given/given_files.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/sys.h"
#include "change/test_tree.h"

namespace change {
namespace {

// Makes everything after this call later than everything before it.
timespec Now(const TestTree& checkout) {
  ::usleep(20'000);
  timespec now = sys::FileTime(checkout.root());
  ::usleep(20'000);
  return now;
}

// A checkout, and a layer over it in which an agent works.
struct Work {
  TestTree checkout;
  TestTree upper;
  Fd opened;
  GivenFiles given;
  ChangedTree tree{-1};

  void Begin(std::chrono::milliseconds longest = std::chrono::seconds(10)) {
    tree.meanwhile.since = Now(checkout);
    given = LookAtCheckout(checkout.root(), nullptr, *tree.meanwhile.since, longest);
    tree.meanwhile.given = &given;
    Result<Fd> directory = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
    REQUIRE(directory.ok());
    opened = std::move(directory).value();
    tree.fd = opened.get();
  }

  ChangeSet Capture() {
    Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
    REQUIRE(changes.ok());
    CHECK(changes.value().complete);
    return std::move(changes).value();
  }
};

std::string ConflictsOf(const ChangeSet& changes) {
  std::string all;
  for (const Conflict& conflict : changes.conflicts) {
    all += conflict.path + " " + conflict.reason.substr(0, 7) + " " + conflict.bytes;
  }
  return all;
}

TEST_CASE("A file with a new time and the old content has not changed") {
  Work work;
  for (const char* name : {"touched", "replaced", "locked", "deleted", "dir/a"}) {
    work.checkout.Write(name, "1\n");
  }
  work.Begin();
  for (const char* name : {"touched", "deleted", "dir/a"}) work.checkout.Write(name, "1\n");
  work.checkout.Write("new", "1\n");
  std::filesystem::rename(work.checkout.At("new"), work.checkout.At("replaced"));
  std::filesystem::permissions(work.checkout.At("locked"), std::filesystem::perms::owner_all);
  std::filesystem::permissions(work.checkout.At("locked"), std::filesystem::perms(0600));
  for (const char* name : {"touched", "replaced", "locked"}) work.upper.Write(name, "2\n");
  work.upper.Whiteout("deleted");
  work.upper.Whiteout("dir");
  ChangeSet changes = work.Capture();
  CHECK(changes.files.size() == 5);
  CHECK(changes.conflicts.empty());
}

TEST_CASE("What both changed is a conflict, and what others removed or moved is noticed") {
  Work work;
  for (const char* name :
       {"both", "mode", "gone", "gone-by-both", "moved/a", "into/a", "other/a"}) {
    work.checkout.Write(name, "1\n");
  }
  work.checkout.Write("other/a", "not the agent's\n");
  work.Begin();
  work.checkout.Write("both", "others\n");
  work.checkout.Write("mode", "1\n", 0755);
  std::filesystem::remove(work.checkout.At("gone"));
  std::filesystem::remove(work.checkout.At("gone-by-both"));
  std::filesystem::rename(work.checkout.At("moved"), work.checkout.At("elsewhere"));
  std::filesystem::remove_all(work.checkout.At("into"));
  std::filesystem::rename(work.checkout.At("other"), work.checkout.At("into"));
  for (const char* name : {"both", "mode", "gone", "moved/a", "into/a"}) {
    work.upper.Write(name, "2\n");
  }
  work.upper.Whiteout("gone-by-both");
  work.upper.Write("beside", "2\n");
  ChangeSet changes = work.Capture();
  REQUIRE(changes.files.size() == 1);
  CHECK(changes.files[0].path == "beside");
  std::sort(changes.conflicts.begin(), changes.conflicts.end(),
            [](const Conflict& one, const Conflict& other) { return one.path < other.path; });
  CHECK(ConflictsOf(changes) ==
        "both changed 2\ngone removed 2\ninto/a changed 2\nmode changed 2\nmoved/a removed 2\n");
}

TEST_CASE("In a directory that the agent removed, what others made or moved there stays") {
  Work work;
  work.checkout.Write("dir/a", "1\n");
  work.checkout.Write("old/b", "1\n");
  work.Begin();
  work.checkout.Write("dir/new", "others\n");
  std::filesystem::rename(work.checkout.At("old"), work.checkout.At("dir/old"));
  work.upper.Whiteout("dir");
  ChangeSet changes = work.Capture();
  REQUIRE(changes.files.size() == 1);
  CHECK(changes.files[0].path == "dir/a");
  CHECK(changes.conflicts.empty());
  CHECK(changes.left_out_count == 2);
}

TEST_CASE("A look that takes too long lists less, and then the time decides") {
  Work work;
  work.checkout.Write("touched", "1\n");
  work.Begin(std::chrono::milliseconds(0));
  CHECK_FALSE(work.given.whole);
  work.checkout.Write("touched", "1\n");
  work.upper.Write("touched", "2\n");
  CHECK(ConflictsOf(work.Capture()) == "touched changed 2\n");
}

TEST_CASE("What is written while a checkout is looked at is not taken for what it had") {
  TestTree checkout;
  checkout.Write("before", "1\n");
  const timespec since = Now(checkout);
  checkout.Write("after", "1\n");
  const GivenFiles given = LookAtCheckout(checkout.root(), nullptr, since);
  CHECK(given.whole);
  REQUIRE(given.files.size() == 2);
  CHECK(given.files.at("before").has_value());
  CHECK_FALSE(given.files.at("after").has_value());
}

TEST_CASE("A look in the background goes on until it is taken, and ends then") {
  TestTree checkout;
  checkout.Write("a", "1\n");
  const timespec since = Now(checkout);
  BackgroundLook look(checkout.root(), nullptr, since);
  ::usleep(1'000'000);
  const GivenFiles given = look.Take();
  CHECK(given.whole);
  CHECK(given.files.at("a").has_value());

  const GivenFiles stopped =
      LookAtCheckout(checkout.root(), nullptr, since, kLookMax, [] { return true; });
  CHECK_FALSE(stopped.whole);
  CHECK(stopped.files.empty());
}

}  // namespace
}  // namespace change
