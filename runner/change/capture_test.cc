// SPDX-License-Identifier: Apache-2.0
#include "change/capture.h"

#include <sys/socket.h>
#include <sys/xattr.h>

#include <algorithm>

#include "base/skip.h"
#include "change/apply.h"
#include "change/patch.h"
#include "change/test_tree.h"
#include "change/tree_edit.h"
#include "change/upper_walk.h"

namespace change {
namespace {

ChangeSet Capture(const TestTree& upper, const TestTree& checkout, const Repository* repository,
                  const CaptureLimits& limits = {}) {
  Result<Fd> fd = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.ok());
  Result<ChangeSet> changes = CaptureChanges(fd.value().get(), checkout.root(), repository, limits);
  REQUIRE(changes.ok());
  return std::move(changes).value();
}

std::vector<std::string> Summary(const ChangeSet& changes) {
  constexpr const char* kKinds[] = {"created", "modified", "deleted", "renamed", "mode"};
  std::vector<std::string> lines;
  for (const FileChange& file : changes.files) {
    lines.push_back(std::string(kKinds[static_cast<int>(file.kind)]) + " " + file.path);
  }
  return lines;
}

std::vector<std::string> Conflicts(const ChangeSet& changes) {
  std::vector<std::string> paths;
  for (const Conflict& conflict : changes.conflicts) paths.push_back(conflict.path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool LeavesOut(const ChangeSet& changes, const std::string& path, const std::string& reason) {
  return std::any_of(changes.left_out.begin(), changes.left_out.end(), [&](const LeftOut& left) {
    return left.path == path && left.reason.find(reason) != std::string::npos;
  });
}

using Lines = std::vector<std::string>;

TEST_CASE("An empty upper layer is no change") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("a", "x\n");
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(changes.files.empty());
  CHECK(changes.patch.empty());
  CHECK(changes.complete);
}

TEST_CASE("Of a tree that is not whole, no set of changes is complete") {
  TestTree upper;
  TestTree checkout;
  upper.Write("new", "x\n");
  Result<Fd> fd = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.ok());
  ChangedTree tree{fd.value().get()};
  CHECK(CaptureChanges(tree, checkout.root(), nullptr, {}).value().complete);
  tree.missing = "not all of it could be fetched";
  Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  CHECK_FALSE(changes.value().complete);
  CHECK(LeavesOut(changes.value(), ".", "not all of it could be fetched"));
  CHECK(Summary(changes.value()) == Lines{"created new"});
}

TEST_CASE("Each kind of change is told apart") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("modified", "1\n2\n3\n");
  checkout.Write("mode", "#!/bin/sh\n");
  checkout.Write("deleted", "gone for good\n");
  checkout.Write("old-name", "a\nb\nc\nd\ne\nf\ng\n");
  checkout.Write("touched", "same\n");
  upper.Write("created", "new\nlines\n");
  upper.Write("modified", "1\n2 and more\n3\n");
  upper.Write("mode", "#!/bin/sh\n", 0755);
  upper.Whiteout("deleted");
  upper.Whiteout("old-name");
  upper.Write("dir/new-name", "a\nb\nc\nd\ne\nf\ng\n");
  upper.Write("touched", "same\n");
  upper.Link("link", "created");
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(Summary(changes) == Lines{"created created", "deleted deleted", "renamed dir/new-name",
                                  "created link", "mode mode", "modified modified"});
  CHECK(changes.files[0].additions == 2);
  CHECK(changes.files[0].bytes == 10);
  CHECK(changes.files[2].old_path == "old-name");
  CHECK(changes.files[3].link_target == "created");
  CHECK(changes.files[3].new_mode == 0120000);
  CHECK(changes.files[4].old_mode == 0100644);
  CHECK(changes.files[4].new_mode == 0100755);
  CHECK(changes.files[5].additions == 1);
  CHECK(changes.files[5].deletions == 1);
}

TEST_CASE("A modified file gives the patch git would give") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("a b", "one\ntwo\n");
  upper.Write("a b", "one\nthree");
  CHECK(Capture(upper, checkout, nullptr).patch ==
        "diff --git a/a b b/a b\n"
        "index 814f4a422927b82f5f8a43f8fab6d3839e3983f2..7279b450fade0f69fd140ada97bd366a8384b984 "
        "100644\n"
        "--- a/a b\n"
        "+++ b/a b\n"
        "@@ -1,2 +1,2 @@\n"
        " one\n"
        "-two\n"
        "+three\n"
        "\\ No newline at end of file\n");
}

TEST_CASE("A whiteout of a directory deletes the files beneath it") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("dir/a", "1\n");
  checkout.Write("dir/sub/b", "2\n");
  checkout.Write("dirt", "kept\n");
  upper.Whiteout("dir");
  CHECK(Summary(Capture(upper, checkout, nullptr)) == Lines{"deleted dir/a", "deleted dir/sub/b"});
}

TEST_CASE("A file in the place of a directory, and a directory in the place of a file") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("dir/a", "1\n");
  checkout.Write("file", "22\n");
  checkout.Link("link", "dir");
  upper.Link("dir", "file");
  upper.Write("file/inner", "new content\n");
  upper.Write("link", "a file now\n");
  CHECK(Summary(Capture(upper, checkout, nullptr)) == Lines{"created dir", "deleted dir/a",
                                                            "deleted file", "created file/inner",
                                                            "deleted link", "created link"});
}

TEST_CASE("An opaque directory hides what the lower layer has, at every depth") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("dir/kept", "same\n");
  checkout.Write("dir/gone", "1\n");
  checkout.Write("dir/sub/gone", "22\n");
  checkout.Write("dir/other/gone", "333\n");
  upper.Write("dir/kept", "same\n");
  upper.Write("dir/sub/new", "something else\n");
  if (::setxattr(upper.At("dir").c_str(), "user.overlay.opaque", "y", 1, 0) != 0) {
    SKIP("xattr: no user attributes on the temporary directory's file system");
  }
  CHECK(Summary(Capture(upper, checkout, nullptr)) ==
        Lines{"deleted dir/gone", "deleted dir/other/gone", "deleted dir/sub/gone",
              "created dir/sub/new"});
}

TEST_CASE("An empty file is a whiteout only in a directory marked for it") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("marked/a", "1\n");
  checkout.Write("plain/a", "22\n");
  for (const char* path : {"marked/a", "plain/a"}) {
    upper.Write(path, "");
    if (::setxattr(upper.At(path).c_str(), "user.overlay.whiteout", "", 0, 0) != 0) {
      SKIP("xattr: no user attributes on the temporary directory's file system");
    }
  }
  REQUIRE(::setxattr(upper.At("marked").c_str(), "user.overlay.opaque", "x", 1, 0) == 0);
  CHECK(Summary(Capture(upper, checkout, nullptr)) ==
        Lines{"deleted marked/a", "modified plain/a"});
}

TEST_CASE("Nothing named .git is looked at") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("a", "x");
  checkout.Commit({"a"});
  upper.Write(".git/config", "[core]\n\thooksPath = /tmp\n");
  upper.Write(".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
  upper.Write("vendor/.git/config", "[core]\n");
  upper.Write("vendor/a", "kept\n");
  upper.Write("other/.GIT/config", "[core]\n");
  upper.Write("third/GIT~1", "x");
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(Summary(changes) == Lines{"created vendor/a"});
  CHECK(changes.patch.find("hook") == std::string::npos);
  CHECK(changes.left_out_count == 3);
  CHECK(LeavesOut(changes, "vendor/.git", "belongs to git"));
}

TEST_CASE("Untracked files are left out by the rules as the agent left them; a new rule is named") {
  TestTree upper;
  TestTree checkout;
  checkout.Write(".gitignore", "build/\n*.log\n");
  checkout.Write("tracked.log", "1\n");
  checkout.Write("old.log", "1\n");
  checkout.Write("build/tracked", "1\n");
  checkout.Write("build/old", "1\n");
  checkout.Commit({".gitignore"});
  {
    Result<Repository> plain = Repository::Open(checkout.root());
    git_repository* raw = nullptr;
    REQUIRE(git_repository_open(&raw, checkout.root().c_str()) == 0);
    GitRepository repository(raw);
    git_index* raw_index = nullptr;
    REQUIRE(git_repository_index(&raw_index, raw) == 0);
    GitIndex index(raw_index);
    REQUIRE(git_index_add_bypath(raw_index, "tracked.log") == 0);
    REQUIRE(git_index_add_bypath(raw_index, "build/tracked") == 0);
    REQUIRE(git_index_write(raw_index) == 0);
  }
  upper.Write(".gitignore", "secret-file\n");
  upper.Write("secret-file", "ignored by a rule that the agent added\n");
  upper.Write("new.log", "2\n");
  upper.Write("tracked.log", "2\n");
  upper.Whiteout("old.log");
  upper.Whiteout("build");
  upper.Write("node/build/out", "3\n");
  Repository repository = Repository::Open(checkout.root()).value();
  ChangeSet changes = Capture(upper, checkout, &repository);
  CHECK(Summary(changes) == Lines{"modified .gitignore", "deleted build/tracked", "created new.log",
                                  "created node/build/out", "modified tracked.log"});
  CHECK(changes.ignored_count == 2);  // old.log and build/old, gone.
  REQUIRE(changes.left_out.size() == 1);
  CHECK(changes.left_out[0].path == "secret-file");
  CHECK_FALSE(changes.left_out[0].lost);
  CHECK(changes.complete);
}

TEST_CASE("Of the ignored part, what the checkout's own rules ignore is captured") {
  TestTree upper;
  TestTree checkout;
  checkout.Write(".gitignore", "build/\n*.log\n");
  checkout.Write("build/old", "1\n");
  checkout.Write("build/gone", "1\n");
  checkout.Write("build/place/x", "1\n");
  checkout.Commit({".gitignore"});
  upper.Write(".gitignore", "build/\n*.log\nnew\n!wanted.log\n");
  upper.Write("new", "ignored by a rule that the agent added\n");
  upper.Write("plain", "in the patch\n");
  upper.Write("wanted.log", "in the patch\n");
  upper.Write("deep/a.log", "2\n");
  upper.Write("build/old", "2\n", 0755);
  upper.Whiteout("build/gone");
  upper.Write("build/place", "in the way of a directory\n");
  upper.Link("build/link", "/etc/passwd");
  upper.Write("build/env/pyvenv.cfg", "");
  upper.Write("build/env/bin/python", "");
  upper.Write("build/sub/.git/config", "");
  Repository repository = Repository::Open(checkout.root()).value();
  Fd fd = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY).value();
  const ChangeSet changes =
      CaptureChanges(fd.get(), checkout.root(), &repository, {}, Part::kIgnored).value();
  CHECK(Summary(changes) ==
        Lines{"created build/link", "modified build/old", "created deep/a.log"});
  std::set<std::string> left;
  for (const LeftOut& one : changes.left_out) left.insert(one.path + ": " + one.reason);
  CHECK(left == std::set<std::string>{
                    "build/env: a virtual environment that the agent made, which works at its own "
                    "place only",
                    "build/place: something of another kind is there in the checkout",
                    "build/sub/.git: belongs to git"});
}

TEST_CASE("A rule with many stars is followed as any other, and so are those beside it") {
  TestTree upper;
  TestTree checkout;
  checkout.Write(".gitignore", "node_modules/\n*a*b*c*d*e*f*g*h*i*j*k*l*m\np/**/src/**/gen/**\n");
  checkout.Commit({".gitignore"});
  upper.Write("node_modules/x", "1\n");
  upper.Write("p/a/src/b/gen/c", "2\n");
  upper.Write("p/a/src/kept", "3\n");
  Repository repository = Repository::Open(checkout.root()).value();
  CHECK(Summary(Capture(upper, checkout, &repository)) == Lines{"created p/a/src/kept"});
  upper.Write(".gitignore", "node_modules/\np/**/src/**/gen/**/c\n");
  CHECK(Summary(Capture(upper, checkout, &repository)) ==
        Lines{"modified .gitignore", "created p/a/src/kept"});
}

TEST_CASE("What is no file is left out, with what it is") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("was-a-file", "x\n");
  REQUIRE(::mkfifo(upper.At("pipe").c_str(), 0644) == 0);
  REQUIRE(::mkfifo(upper.At("was-a-file").c_str(), 0644) == 0);
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(Summary(changes) == Lines{"deleted was-a-file"});
  CHECK(LeavesOut(changes, "pipe", "a named pipe"));
  CHECK(changes.complete);
}

TEST_CASE("Modes become git's: set-user-id and the like do not travel") {
  TestTree upper;
  TestTree checkout;
  upper.Write("tool", "x\n", 04755);
  upper.Write("open", "y y\n", 0666);
  ChangeSet changes = Capture(upper, checkout, nullptr);
  REQUIRE(changes.files.size() == 2);
  CHECK(changes.files[0].new_mode == 0100644);
  CHECK(changes.files[1].new_mode == 0100755);
}

TEST_CASE("Files and directories without read permission are read all the same") {
  TestTree upper;
  TestTree checkout;
  upper.Write("dir/closed", "x\n", 0);
  REQUIRE(::chmod(upper.At("dir").c_str(), 0) == 0);
  CHECK(Summary(Capture(upper, checkout, nullptr)) == Lines{"created dir/closed"});
}

TEST_CASE("Links in the upper layer are never followed") {
  TestTree upper;
  TestTree checkout;
  TestTree outside;
  outside.Write("secret", "host secret\n");
  upper.Link("file", outside.At("secret"));
  upper.Link("dir", outside.root());
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(Summary(changes) == Lines{"created dir", "created file"});
  CHECK(changes.patch.find("host secret") == std::string::npos);
}

TEST_CASE("A limit names what it left out and makes the set incomplete") {
  TestTree upper;
  TestTree checkout;
  upper.Write("big", std::string(2000, 'x'));
  upper.Write("small", "x\n");
  CaptureLimits limits;
  SECTION("the size of a file") {
    limits.file_bytes_max = 1000;
    ChangeSet changes = Capture(upper, checkout, nullptr, limits);
    CHECK(Summary(changes) == Lines{"created small"});
    CHECK(LeavesOut(changes, "big", "larger than 1000 bytes"));
    CHECK_FALSE(changes.complete);
  }
  SECTION("the size of the patch") {
    limits.patch_bytes_max = 1000;
    ChangeSet changes = Capture(upper, checkout, nullptr, limits);
    CHECK(Summary(changes) == Lines{"created small"});
    CHECK(changes.patch.find("b/big") == std::string::npos);
    CHECK_FALSE(changes.complete);
  }
  SECTION("the number of files") {
    limits.files_max = 1;
    ChangeSet changes = Capture(upper, checkout, nullptr, limits);
    CHECK(changes.files.size() == 1);
    CHECK_FALSE(changes.complete);
  }
  SECTION("the length of their names") {
    limits.path_bytes_max = 7;
    ChangeSet changes = Capture(upper, checkout, nullptr, limits);
    CHECK(Summary(changes) == Lines{"created big"});
    CHECK(LeavesOut(changes, "small", "the names of changed files have more than 7 bytes"));
    CHECK_FALSE(changes.complete);
    limits.path_bytes_max = 8;
    CHECK(Capture(upper, checkout, nullptr, limits).complete);
  }
  SECTION("the length of a directory's names") {
    Fd opened = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY).value();
    CHECK_FALSE(ListNames(opened.get(), 10, 7).ok());
    CHECK(ListNames(opened.get(), 10, 8).value() == Lines{"big", "small"});
  }
  SECTION("the size of all files") {
    limits.content_bytes_max = 1000;
    ChangeSet changes = Capture(upper, checkout, nullptr, limits);
    CHECK(Summary(changes) == Lines{"created small"});
    CHECK_FALSE(changes.complete);
  }
  SECTION("the number of entries") {
    limits.entries_max = 1;
    CHECK_FALSE(Capture(upper, checkout, nullptr, limits).complete);
  }
}

TEST_CASE("A huge sparse file costs nothing but its name") {
  TestTree upper;
  TestTree checkout;
  upper.Write("sparse", "");
  REQUIRE(::truncate(upper.At("sparse").c_str(), int64_t{1} << 40) == 0);
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(changes.files.empty());
  CHECK(LeavesOut(changes, "sparse", "larger than"));
}

TEST_CASE("A tree too deep for a path is left out without harm") {
  TestTree upper;
  TestTree checkout;
  std::string name(200, 'd');
  int at = ::open(upper.root().c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 40; ++depth) {
    REQUIRE(::mkdirat(at, name.c_str(), 0755) == 0);
    int next = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
  }
  ::close(at);
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(changes.files.empty());
  CHECK_FALSE(changes.complete);
}

TEST_CASE("A change in a repository inside the checkout makes the set incomplete") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("sub/.git", "gitdir: ../.git/modules/sub\n");
  checkout.Write("sub/a", "x\n");
  checkout.Write("sub/same", "x\n");
  upper.Write("sub/same", "x\n");
  CHECK(Capture(upper, checkout, nullptr).complete);
  upper.Write("sub/a", "y\n");
  upper.Write("beside", "z\n");
  ChangeSet changes = Capture(upper, checkout, nullptr);
  CHECK(Summary(changes) == Lines{"created beside"});
  CHECK(LeavesOut(changes, "sub/a", "submodule sub"));
  CHECK(changes.left_out_count == 1);
  CHECK_FALSE(changes.complete);
}

TEST_CASE("A deleted submodule, and one that is not checked out, make the set incomplete") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("sub/.git", "gitdir: ../.git/modules/sub\n");
  checkout.Write("sub/a", "x\n");
  upper.Whiteout("sub");
  CHECK_FALSE(Capture(upper, checkout, nullptr).complete);

  TestTree filled;
  TestTree empty;
  empty.Write(".gitmodules", "[submodule \"lib\"]\n");
  empty.Directory("lib");
  empty.Commit({".gitmodules"});
  filled.Write("lib/a", "x\n");
  Result<Repository> plain = Repository::Open(empty.root());
  REQUIRE(plain.ok());
  CHECK(Summary(Capture(filled, empty, &plain.value())) == Lines{"created lib/a"});
  empty.AddSubmodule("lib");
  Result<Repository> repository = Repository::Open(empty.root());
  REQUIRE(repository.ok());
  CHECK(LeavesOut(Capture(filled, empty, &repository.value()), "lib/a", "submodule lib"));
  CHECK_FALSE(Capture(filled, empty, &repository.value()).complete);
  // With git's own file, it was checked out, as builds do.
  filled.Write("lib/.git", "gitdir: ../.git/modules/lib\n");
  filled.Write("beside", "x\n");
  ChangeSet changes = Capture(filled, empty, &repository.value());
  CHECK(Summary(changes) == Lines{"created beside"});
  CHECK(LeavesOut(changes, "lib", "not checked out before"));
  CHECK(changes.complete);
}

TEST_CASE("What a submodule ignores and does not track may change") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("a", "x\n");
  checkout.Commit({"a"});
  TestTree submodule;
  submodule.Write(".gitignore", "*.o\nbuild/\n");
  submodule.Write("tracked.o", "x\n");
  submodule.Commit({".gitignore"});
  std::filesystem::copy(submodule.root(), checkout.At("sub"),
                        std::filesystem::copy_options::recursive);
  Result<Repository> repository = Repository::Open(checkout.root());
  REQUIRE(repository.ok());
  upper.Write("sub/new.o", "y\n");
  upper.Write("sub/build/x", "y\n");
  upper.Write("sub/tracked.o", "y\n");
  CHECK(Capture(upper, checkout, &repository.value()).complete);
  submodule.Write("tracked.o", "x\n");
  std::filesystem::remove_all(checkout.At("sub"));
  std::filesystem::remove_all(submodule.At(".git"));
  submodule.Commit({".gitignore", "tracked.o"});
  std::filesystem::copy(submodule.root(), checkout.At("sub"),
                        std::filesystem::copy_options::recursive);
  ChangeSet changes = Capture(upper, checkout, &repository.value());
  CHECK(LeavesOut(changes, "sub/tracked.o", "submodule sub"));
  CHECK(changes.left_out_count == 1);
}

TEST_CASE("Names of any bytes come through") {
  TestTree upper;
  TestTree checkout;
  upper.Write("new\nline", "1\n");
  upper.Write("\xff\xfe", "22\n");
  upper.Write("tab\t\"quote\"", "333\n");
  CHECK(Summary(Capture(upper, checkout, nullptr)) ==
        Lines{"created new\nline", "created tab\t\"quote\"", "created \xff\xfe"});
}

// A copy of `checkout`, and everything after this call is later than its time.
ChangedTree CopyOf(const TestTree& checkout, const TestTree& copy, const Fd& opened) {
  std::filesystem::copy(
      checkout.root(), copy.root(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  ::usleep(20'000);  // Times are as coarse as the kernel's clock.
  copy.Write("mark", "");
  struct stat st {};
  REQUIRE(::stat(copy.At("mark").c_str(), &st) == 0);
  std::filesystem::remove(copy.At("mark"));
  ::usleep(20'000);
  ChangedTree tree(opened.get());
  tree.copied = st.st_ctim;
  return tree;
}

TEST_CASE("In a copy, changes are what differs from the checkout") {
  TestTree checkout;
  for (const char* name : {"kept", "modified", "deleted", "dir/inside", "skipped/report"}) {
    checkout.Write(name, std::string(name) + " of the checkout\n");
  }
  checkout.Write("left/x", "left \n");
  checkout.Write("right/x", "right\n");
  TestTree copy;
  Result<Fd> opened = sys::Open(copy.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(opened.ok());
  ChangedTree tree = CopyOf(checkout, copy, opened.value());
  tree.not_copied = {checkout.At("skipped")};
  std::filesystem::remove_all(copy.At("skipped"));
  auto capture = [&] {
    Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
    REQUIRE(changes.ok());
    CHECK(changes.value().complete);
    return Summary(changes.value());
  };
  CHECK(capture().empty());

  copy.Write("modified", "modified in the copied\n");  // The size is the same.
  std::filesystem::remove(copy.At("deleted"));
  std::filesystem::remove_all(copy.At("dir"));
  copy.Write("dir", "a file now\n");
  // Neither file was touched, and both are others now.
  std::filesystem::rename(copy.At("left"), copy.At("between"));
  std::filesystem::rename(copy.At("right"), copy.At("left"));
  std::filesystem::rename(copy.At("between"), copy.At("right"));
  copy.Write("skipped/report", "in the way of what was left out\n");
  CHECK(capture() == Lines{"deleted deleted", "created dir", "deleted dir/inside",
                           "modified left/x", "modified modified", "modified right/x"});
}

// Makes everything after this call later than everything before it.
timespec Now(const TestTree& checkout) {
  ::usleep(20'000);
  timespec now = sys::FileTime(checkout.root());
  ::usleep(20'000);
  return now;
}

TEST_CASE("What others did to a checkout while its copy was worked on is not the agent's") {
  TestTree checkout;
  for (const char* name :
       {"edited", "both", "deleted", "agent's", "dir/edited", "old/a", "only/a", "put/a"}) {
    checkout.Write(name, std::string(name) + " of the checkout\n");
  }
  TestTree copy;
  Result<Fd> opened = sys::Open(copy.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(opened.ok());
  timespec since = Now(checkout);
  ChangedTree tree = CopyOf(checkout, copy, opened.value());
  tree.meanwhile.since = since;
  GivenFiles given;
  given.whole = true;
  for (const char* name :
       {"edited", "both", "deleted", "agent's", "dir/edited", "old/a", "only/a", "put/a"}) {
    given.files[name] = FileContent{0100644, BlobId(checkout.Read(name)).value()};
  }
  tree.meanwhile.given = &given;
  copy.Write("agent's", "changed\n");
  for (const char* name : {"edited", "both", "dir/edited"}) checkout.Write(name, "edited\n");
  checkout.Write("dir/new", "an hour of work\n");
  std::filesystem::remove(checkout.At("deleted"));
  std::filesystem::remove_all(checkout.At("put"));
  checkout.Write("put", "a file now\n");
  std::filesystem::rename(checkout.At("old"), checkout.At("moved"));
  auto capture = [&] {
    Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
    REQUIRE(changes.ok());
    return std::move(changes).value();
  };
  ChangeSet changes = capture();
  CHECK(Summary(changes) == Lines{"modified agent's"});
  CHECK(changes.left_out_count == 1);  // The top is never as it was copied: `mark` was in it.
  CHECK(LeavesOut(changes, "moved/a", "changed in the checkout"));

  // A file that others made in a directory where the agent worked is not one that it deleted.
  checkout.Write("only/new", "of others\n");
  copy.Write("only/beside", "new\n");
  std::filesystem::remove_all(checkout.At("moved"));
  changes = capture();
  CHECK(Summary(changes) == Lines{"modified agent's", "created only/beside"});
  CHECK(LeavesOut(changes, "only/new", "changed in the checkout"));
  CHECK(changes.complete);

  copy.Write("both", "changed\n");
  copy.Write("dir/beside", "new\n");
  changes = capture();
  CHECK(Summary(changes) == Lines{"modified agent's", "created dir/beside", "created only/beside"});
  CHECK(Conflicts(changes) == Lines{"both"});
  CHECK(LeavesOut(changes, "dir/new", "changed in the checkout"));
  CHECK(changes.conflicts[0].bytes == "changed\n");
  CHECK(changes.complete);
}

TEST_CASE("What others did to a checkout under a layer is not the agent's") {
  TestTree upper;
  TestTree checkout;
  for (const char* name : {"both", "same", "gone", "dir/a"}) checkout.Write(name, "1\n");
  ChangedTree tree{-1};
  tree.meanwhile.since = Now(checkout);
  Result<Fd> opened = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  tree.fd = opened.value().get();
  for (const char* name : {"both", "same", "gone", "new", "dir/b"}) checkout.Write(name, "2\n");
  upper.Write("both", "3\n");
  upper.Write("same", "2\n");
  upper.Write("new", "3\n");
  upper.Whiteout("gone");
  upper.Whiteout("dir");
  upper.Write("agent's", "3\n");
  Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  CHECK(Summary(changes.value()) == Lines{"created agent's"});
  CHECK(Conflicts(changes.value()) == Lines{"both", "dir", "gone", "new"});
  CHECK(changes.value().complete);
}

TEST_CASE("What was applied meanwhile is the base of what the agent does next") {
  TestTree upper;
  TestTree checkout;
  checkout.Write("dir/a", "1\n");
  checkout.Write("other/b", "1\n");
  ChangedTree tree{-1};
  tree.meanwhile.since = Now(checkout);
  Result<Fd> opened = sys::Open(upper.root(), O_RDONLY | O_DIRECTORY);
  tree.fd = opened.value().get();
  upper.Write("dir/a", "2\n");
  upper.Write("other/b", "2\n");
  upper.Write("made/c", "2\n");
  upper.Write("gone/d", "2\n");
  auto capture = [&] {
    Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
    REQUIRE(changes.ok());
    return std::move(changes).value();
  };
  ChangeSet first = capture();
  REQUIRE(ApplyPatch(checkout.root(), nullptr, first).ok());
  NoteWritten(checkout.root(), tree.fd, first, &tree.meanwhile);
  CHECK(capture().patch.empty());
  CHECK(capture().complete);
  Now(checkout);
  checkout.Write("other/b", "of another\n");  // The agent has not gone on there: it stays so.
  std::filesystem::remove(checkout.At("gone/d"));
  CHECK(capture().patch.empty());
  CHECK(capture().complete);
  checkout.Write("dir/a", "2\n");  // Touched: it is what was applied.
  upper.Write("dir/a", "3\n");
  std::filesystem::remove_all(upper.At("made"));
  upper.Whiteout("made");
  CHECK(Summary(capture()) == Lines{"modified dir/a", "deleted made/c"});
  CHECK(capture().complete);
  Now(checkout);
  checkout.Write("dir/a", "of another\n");
  checkout.Write("made/new", "of another\n");
  ChangeSet changes = capture();
  CHECK(changes.files.empty());
  CHECK(Conflicts(changes) == Lines{"dir/a", "made"});
}

TEST_CASE("A copy with nothing of the checkout deletes nothing, and is not complete") {
  TestTree checkout;
  checkout.Write("a", "a\n");
  checkout.Write("dir/b", "b\n");
  TestTree copy;
  Result<Fd> opened = sys::Open(copy.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(opened.ok());
  ChangedTree tree = CopyOf(checkout, copy, opened.value());
  std::filesystem::remove_all(copy.At("dir"));
  // The control: with one file left, the other one was deleted.
  Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  CHECK(Summary(changes.value()) == Lines{"deleted dir/b"});
  std::filesystem::remove(copy.At("a"));
  copy.Write("new", "new\n");
  changes = CaptureChanges(tree, checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  CHECK(changes.value().patch.empty());
  CHECK_FALSE(changes.value().complete);
  REQUIRE(changes.value().left_out.size() == 1);
  CHECK(changes.value().left_out[0].reason.find("nothing of the checkout") == 0);
}

TEST_CASE("Paths that are left out are listed up to a bound, and all are counted") {
  ChangeSet changes;
  for (int i = 0; i < 2000; ++i) LeaveOut(changes, "a/" + std::to_string(i), "named pipe", false);
  CHECK(changes.left_out.size() == 1000);
  CHECK(changes.left_out_count == 2000);
  changes = {};
  for (int i = 0; i < 1000; ++i) LeaveOut(changes, std::string(4096, 'a'), "named pipe", false);
  CHECK(changes.left_out.size() == 64);
  CHECK(changes.left_out_count == 1000);
}

TEST_CASE("In a copy, a layer's marks mean nothing") {
  TestTree checkout;
  checkout.Write("dir/a", "a\n");
  checkout.Write("dir/b", "b\n");
  TestTree copy;
  Result<Fd> opened = sys::Open(copy.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(opened.ok());
  ChangedTree tree = CopyOf(checkout, copy, opened.value());
  copy.Write("dir/empty", "");
  for (const auto& [path, name, value] : {std::tuple("dir", "user.overlay.opaque", "x"),
                                          std::tuple("dir/empty", "user.overlay.whiteout", "y")}) {
    if (::setxattr(copy.At(path).c_str(), name, value, 1, 0) != 0) {
      SKIP("user-attributes: this file system has none");
    }
  }
  Result<ChangeSet> changes = CaptureChanges(tree, checkout.root(), nullptr, {});
  REQUIRE(changes.ok());
  CHECK(Summary(changes.value()) == Lines{"created dir/empty"});
}

}  // namespace
}  // namespace change
