// SPDX-License-Identifier: Apache-2.0
#include "change/apply.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/code_of.h"
#include "base/skip.h"
#include "change/test_tree.h"

namespace change {
namespace {

ChangeSet Capture(const TestTree& upper, const TestTree& checkout) {
  Result<Fd> fd = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.ok());
  Result<ChangeSet> changes = CaptureChanges(fd.value().get(), checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  return std::move(changes).value();
}

ChangeSet Patch(const std::string& text) {
  ChangeSet changes;
  changes.patch = text;
  return changes;
}

// A created file "x\n", as git writes it.
std::string Creation(const std::string& path, const std::string& mode = "100644") {
  return "diff --git a/" + path + " b/" + path + "\nnew file mode " + mode +
         "\nindex 0000000000000000000000000000000000000000.."
         "587be6b4c3f93f93c489c0111bba5596147a26cb\n--- /dev/null\n+++ b/" +
         path + "\n@@ -0,0 +1 @@\n+x\n";
}

size_t EntryCount(const TestTree& tree) {
  auto entries = std::filesystem::recursive_directory_iterator(tree.root());
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

TEST_CASE("ApplyPatch makes the checkout what the agent made of it") {
  TestTree upper;
  TestTree checkout;
  std::string binary("\0\1\2binary", 9);
  checkout.Write("modified", "1\r\n2\r\n3");
  checkout.Write("gone/deep/file", "x\n");
  checkout.Write("binary", binary + std::string(3000, 'b'));
  checkout.Write("becomes-link", "x\n");
  checkout.Write("mode", "#!/bin/sh\n");
  checkout.Write(".git/HEAD", "ref: refs/heads/main\n");
  upper.Write("modified", "1\r\n2 too\r\n3\n");
  upper.Whiteout("gone");
  upper.Write("binary", binary + std::string(3000, 'b') + binary);
  upper.Write("new binary", binary);
  upper.Write("empty file", "");
  upper.Link("becomes-link", "modified");
  upper.Write("mode", "#!/bin/sh\n", 0755);
  ChangeSet changes = Capture(upper, checkout);
  Status applied = ApplyPatch(checkout.root(), nullptr, changes);
  REQUIRE(applied.ok());
  CHECK(checkout.Read("modified") == "1\r\n2 too\r\n3\n");
  CHECK_FALSE(checkout.Has("gone"));
  CHECK(checkout.Read("binary") == binary + std::string(3000, 'b') + binary);
  CHECK(checkout.Read("new binary") == binary);
  CHECK(checkout.Has("empty file"));
  CHECK(sys::ReadLink(checkout.At("becomes-link")) == "modified");
  CHECK((checkout.Mode("mode") & 0111) != 0);
  CHECK(checkout.Read(".git/HEAD") == "ref: refs/heads/main\n");
  CHECK(EntryCount(checkout) == 8);  // Nothing temporary is left.
}

TEST_CASE("ApplyPatch as root leaves what it writes to the owner of the directory") {
  if (::geteuid() != 0) {
    SKIP("root: only root can give a file away");
  }
  TestTree checkout;
  REQUIRE(::chown(checkout.root().c_str(), 12345, 12345) == 0);
  Status applied = ApplyPatch(checkout.root(), nullptr, Patch(Creation("new/file")));
  REQUIRE(applied.ok());
  for (const char* name : {"new", "new/file"}) {
    struct stat st {};
    REQUIRE(::lstat(checkout.At(name).c_str(), &st) == 0);
    CHECK(st.st_uid == 12345);
    CHECK(st.st_gid == 12345);
  }
}

TEST_CASE("ApplyPatch changes nothing when one file is not what the patch was made from") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("a", "1\n");
  checkout.Write("b", "1\n");
  upper.Write("a", "2\n");
  upper.Write("b", "2\n");
  upper.Write("c", "2\n");
  ChangeSet changes = Capture(upper, checkout);
  SECTION("other bytes") { checkout.Write("b", "edited meanwhile\n"); }
  SECTION("not there") { std::filesystem::remove(checkout.At("b")); }
  SECTION("another mode") { checkout.Write("b", "1\n", 0755); }
  SECTION("something in the way") { checkout.Write("c/inner", "x"); }
  size_t before = EntryCount(checkout);
  Status applied = ApplyPatch(checkout.root(), nullptr, changes);
  REQUIRE_FALSE(applied.ok());
  CHECK(applied.error().code == Code::kInvalid);
  CHECK(checkout.Read("a") == "1\n");
  CHECK(EntryCount(checkout) == before);
}

TEST_CASE("ApplyPatch leaves what another program saves while it writes") {
  constexpr int kFiles = 300;  // Written before the last one, which the other program saves.
  TestTree upper;
  TestTree checkout;
  TestTree elsewhere;
  checkout.Write("z", "1\n");
  for (int i = 0; i < kFiles; ++i) upper.Write("new/" + std::to_string(i), "x\n");
  bool removed = false;
  SECTION("a file that is written") { upper.Write("z", "2\n"); }
  SECTION("a file that is removed") {
    upper.Whiteout("z");
    removed = true;
  }
  const ChangeSet changes = Capture(upper, checkout);
  const auto begin_again = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(checkout.root())) {
      std::filesystem::remove_all(entry.path());
    }
    checkout.Write("z", "1\n");
  };
  std::atomic<bool> saved = false;
  Status applied = Ok();
  // On a busy machine the other program may not have its turn in time; then all begins again.
  for (int attempt = 0; attempt < 200 && !saved; ++attempt) {
    begin_again();
    elsewhere.Write("z", "another program's\n");
    std::atomic<bool> done = false;
    std::thread other([&] {
      while (!done && !saved) {
        for (const auto& entry : std::filesystem::directory_iterator(checkout.root())) {
          if (entry.path().filename().string().starts_with(".agentic-ci-apply.")) saved = true;
        }
      }
      if (saved) std::filesystem::rename(elsewhere.At("z"), checkout.At("z"));
    });
    applied = ApplyPatch(checkout.root(), nullptr, changes);
    done = true;
    other.join();
  }
  REQUIRE(saved);
  CHECK(checkout.Read("z") == "another program's\n");
  CHECK(EntryCount(checkout) <= kFiles + 2);  // Nothing temporary is left.
  if (applied.ok()) return;                   // It was saved after all was in place.
  CHECK(applied.error().what.find("z was changed while") != std::string::npos);
  begin_again();  // The control: nothing is saved meanwhile.
  REQUIRE(ApplyPatch(checkout.root(), nullptr, changes).ok());
  CHECK(checkout.Has("z") != removed);
  CHECK(checkout.Has("new/0"));
}

TEST_CASE("ApplyPatch writes through no symbolic link") {
  TestTree checkout;
  TestTree outside;
  outside.Write("kept", "x\n");
  checkout.Link("dir", outside.root());
  checkout.Link("file", outside.At("kept"));
  CHECK(CodeOf(ApplyPatch(checkout.root(), nullptr, Patch(Creation("dir/new")))) == Code::kInvalid);
  CHECK(CodeOf(ApplyPatch(checkout.root(), nullptr, Patch(Creation("dir/sub/new")))) ==
        Code::kInvalid);
  CHECK(CodeOf(ApplyPatch(checkout.root(), nullptr, Patch(Creation("file")))) == Code::kInvalid);
  CHECK(EntryCount(outside) == 1);
  CHECK(ApplyPatch(checkout.root(), nullptr, Patch(Creation("real/new"))).ok());  // The control.
  CHECK(checkout.Read("real/new") == "x\n");
}

TEST_CASE("ApplyPatch refuses what no capture makes") {
  TestTree checkout;
  checkout.Directory(".git");
  for (const char* path : {"../x", "a/../../x", "/abs", ".git/hooks/x", "sub/.GIT/x"}) {
    CAPTURE(path);
    Status applied = ApplyPatch(checkout.root(), nullptr, Patch(Creation(path)));
    REQUIRE_FALSE(applied.ok());
    CHECK(applied.error().code == Code::kRefused);
  }
  CHECK_FALSE(ApplyPatch(checkout.root(), nullptr, Patch(Creation("a", "160000"))).ok());
  CHECK_FALSE(ApplyPatch(checkout.root(), nullptr, Patch(Creation("a", "100666"))).ok());
  CHECK_FALSE(ApplyPatch(checkout.root(), nullptr, Patch(Creation("a") + Creation("a"))).ok());
  CHECK_FALSE(ApplyPatch(checkout.root(), nullptr, Patch(Creation("a") + Creation("a/b"))).ok());
  CHECK_FALSE(ApplyPatch(checkout.root(), nullptr, Patch(Creation("a") + "rest")).ok());
  ChangeSet incomplete = Patch(Creation("a"));
  incomplete.complete = false;
  CHECK(ApplyPatch(checkout.root(), nullptr, incomplete).error().code == Code::kRefused);
  CHECK(EntryCount(checkout) == 1);
}

TEST_CASE("ApplyPatch refuses bytes that are not those the ids name") {
  TestTree checkout;
  std::string text = Creation("a");
  text.replace(text.find("+x\n"), 3, "+y\n");
  CHECK(CodeOf(ApplyPatch(checkout.root(), nullptr, Patch(text))) == Code::kInvalid);
  CHECK(EntryCount(checkout) == 0);
}

TEST_CASE("ApplyPatch refuses a link that may lead outside") {
  TestTree upper;
  TestTree checkout;
  upper.Link("link", "../x");
  ChangeSet changes = Capture(upper, checkout);
  CHECK(ApplyPatch(checkout.root(), nullptr, changes).error().code == Code::kRefused);
  CHECK(EntryCount(checkout) == 0);
}

}  // namespace
}  // namespace change
