// SPDX-License-Identifier: Apache-2.0
#include "change/repository.h"

#include "base/code_of.h"
#include "base/skip.h"
#include "change/agent_ignores.h"
#include "change/test_tree.h"

namespace change {
namespace {

bool Ignores(const Repository& repository, const std::string& path) {
  return AgentIgnores(&repository).IgnoredBefore(path);
}

TEST_CASE("Repository::Open says that a directory without .git is none") {
  TestTree tree;
  Result<Repository> repository = Repository::Open(tree.root());
  REQUIRE_FALSE(repository.ok());
  CHECK(repository.error().code == Code::kNotFound);
}

TEST_CASE("Repository::Open finds the top above a directory, and keeps its questions below") {
  TestTree tree;
  tree.Write(".gitignore", "/sub/out\n/out\n");
  tree.Write("policy", "p");
  tree.Write("sub/a", "x");
  tree.Write("sub/deep/b", "y");
  tree.Commit({".gitignore", "policy", "sub/a", "sub/deep/b"});
  Repository top = Repository::Open(tree.root()).value();
  CHECK(top.prefix().empty());
  Repository below = Repository::Open(tree.At("sub")).value();
  CHECK(below.top() == tree.root());
  CHECK(below.prefix() == "sub/");
  CHECK(below.ReadAtRef("HEAD", "policy", 10).value() == "p");
  CHECK(below.Tracks("a"));
  CHECK_FALSE(below.Tracks("sub/a"));
  CHECK(below.TracksBeneath("deep"));
  CHECK_FALSE(below.TracksBeneath("sub"));
  CHECK(Ignores(below, "out"));
  CHECK_FALSE(Ignores(below, "sub/out"));
}

TEST_CASE("DescribeHead says what a pull request from this branch would") {
  TestTree tree;
  CHECK(CodeOf(Repository::Open(tree.root())) == Code::kNotFound);
  tree.Write("a", "x");
  tree.Commit({"a"});
  HeadFacts facts = Repository::Open(tree.root()).value().DescribeHead().value();
  CHECK(facts.branch == "main");
  CHECK(facts.commit.size() == 40);
  CHECK(facts.base == "refs/heads/main");
  CHECK(facts.base_branch == "main");
  CHECK(facts.title == "test");
  CHECK(facts.body.empty());

  // The remote's own word for its default branch comes first, if that branch is here.
  tree.Write(".git/refs/remotes/origin/trunk", facts.commit + "\n");
  tree.Write(".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/trunk\n");
  tree.Write(".git/HEAD", facts.commit + "\n");
  facts = Repository::Open(tree.root()).value().DescribeHead().value();
  CHECK(facts.branch.empty());
  CHECK(facts.base == "refs/remotes/origin/trunk");
  CHECK(facts.base_branch == "trunk");
  tree.Write(".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/gone\n");
  CHECK(Repository::Open(tree.root()).value().DescribeHead().value().base == "refs/heads/main");
}

TEST_CASE("ReadProposal adds what is not committed, and shows nothing that is withheld") {
  TestTree tree;
  for (const char* path : {"staged", "edited", "same", ".npmrc"}) tree.Write(path, "before\n");
  tree.Commit({"staged", "edited", "same", ".npmrc"});
  std::set<std::string> withheld = {".npmrc"};
  tree.Write("edited", "after\n");
  tree.Write(".npmrc", "token\n");
  tree.Write("untracked", "new\n");
  Repository repository = Repository::Open(tree.root()).value();
  CHECK(repository.ReadProposal("HEAD", 10000).value().paths.empty());
  Proposal proposal = repository.ReadProposal("HEAD", 10000, &withheld).value();
  CHECK(proposal.paths == std::vector<std::string>{".npmrc", "edited"});
  CHECK(proposal.patch.find("+after") != std::string::npos);
  CHECK(proposal.patch.find("token") == std::string::npos);
  CHECK(proposal.patch.find("(not shown: it may hold credentials)") != std::string::npos);

  // Before the first commit, all that was added is a change.
  std::filesystem::remove_all(tree.At(".git/refs"));
  tree.Write(".git/HEAD", "ref: refs/heads/other\n");
  tree.Directory(".git/refs");
  Repository unborn = Repository::Open(tree.root()).value();
  CHECK(unborn.DescribeHead().value().commit.empty());
  CHECK(unborn.ReadProposal("HEAD", 10000, &withheld).value().paths.size() == 4);
}

TEST_CASE("ReadProposal shows no content of what is binary on the disk alone") {
  TestTree tree;
  tree.Write("edited", "before\n");
  tree.Commit({"edited"});
  const std::set<std::string> withheld;
  Repository repository = Repository::Open(tree.root()).value();
  Proposal proposal;
  tree.Write("edited", std::string("a\0b", 3));
  proposal = repository.ReadProposal("HEAD", 10000, &withheld).value();
  CHECK(proposal.patch.find("(binary)") != std::string::npos);
}

TEST_CASE("DifferingPaths names each file that is not the same in HEAD, and nothing else") {
  TestTree tree;
  for (const char* path : {"same/deep/a", "deep/er/b", "gone/c", "becomes", "mode"}) {
    tree.Write(path, "x");
  }
  tree.Commit({"same/deep/a", "deep/er/b", "gone/c", "becomes", "mode"});
  Repository before = Repository::Open(tree.root()).value();
  std::string base = before.ResolveCommit("HEAD").value();
  CHECK(before.DifferingPaths(base).value().empty());

  std::filesystem::remove_all(tree.At("gone"));
  std::filesystem::remove(tree.At("becomes"));
  std::filesystem::permissions(tree.At("mode"), std::filesystem::perms(0755));
  tree.Write("deep/er/b", "y");
  tree.Write("becomes/d", "x");
  tree.Commit({"same/deep/a", "deep/er/b", "becomes/d", "mode"});
  Repository after = Repository::Open(tree.root()).value();
  CHECK(after.DifferingPaths(base).value() ==
        std::vector<std::string>{"becomes", "becomes/d", "deep/er/b", "gone/c", "mode"});
}

TEST_CASE("Repository::Open refuses git's own files where a working tree is wanted") {
  TestTree tree;
  tree.Write("a", "x");
  tree.Commit({"a"});
  tree.Directory("outside");
  std::filesystem::copy(tree.At(".git"), tree.At("outside/bare.git"),
                        std::filesystem::copy_options::recursive);
  for (const char* directory : {"outside/bare.git", "outside/bare.git/refs", ".git", ".git/refs"}) {
    CAPTURE(directory);
    Result<Repository> repository = Repository::Open(tree.At(directory));
    REQUIRE_FALSE(repository.ok());
    CHECK(repository.error().code == Code::kSetup);
  }
  CHECK(Repository::Open(tree.At("outside")).ok());
}

TEST_CASE("Repository::Open takes no .git of another user above") {
  if (::geteuid() != 0) SKIP("root: only root can give a file away");
  TestTree tree;
  tree.Write("sub/a", "x");
  tree.Commit({"sub/a"});
  REQUIRE(::chown(tree.At("sub").c_str(), 4001, 4001) == 0);
  CHECK(Repository::Open(tree.At("sub")).ok());
  REQUIRE(::chown(tree.At(".git").c_str(), 4002, 4002) == 0);
  CHECK(Repository::Open(tree.At("sub")).error().code == Code::kSetup);
  CHECK(Repository::Open(tree.root()).ok());
}

TEST_CASE("unborn tells a repository without a commit from one whose commit is lost") {
  TestTree tree;
  tree.Write("a", "x");
  tree.Commit({"a"});
  CHECK_FALSE(Repository::Open(tree.root()).value().unborn());
  std::filesystem::remove_all(tree.At(".git/objects"));
  tree.Directory(".git/objects");
  Repository lost = Repository::Open(tree.root()).value();
  CHECK_FALSE(lost.unborn());
  CHECK(CodeOf(lost.ResolveCommit("HEAD")) == Code::kNotFound);
  std::filesystem::remove_all(tree.At(".git/refs/heads"));
  CHECK(Repository::Open(tree.root()).value().unborn());
}

TEST_CASE("ReadAtRef gives the committed bytes, not those on disk") {
  TestTree tree;
  tree.Write(".agentic-ci/policy.yml", "trusted\n");
  tree.Commit({".agentic-ci/policy.yml"});
  tree.Write(".agentic-ci/policy.yml", "changed by the proposal\n");
  Result<Repository> repository = Repository::Open(tree.root());
  REQUIRE(repository.ok());
  auto read = repository.value().ReadAtRef("main", ".agentic-ci/policy.yml", 100);
  REQUIRE(read.ok());
  CHECK(read.value() == "trusted\n");
  CHECK(repository.value().ReadAtRef("HEAD", ".agentic-ci/policy.yml", 100).value() == "trusted\n");
  CHECK(CodeOf(repository.value().ReadAtRef("main", ".agentic-ci/policy.yml", 3)) ==
        Code::kInvalid);
}

TEST_CASE("ReadAtRef tells a missing file from a missing ref and from an unreadable one") {
  TestTree tree;
  tree.Write("dir/a", "x");
  tree.Link("link", "dir");
  tree.Commit({"dir/a", "link"});
  Repository repository = Repository::Open(tree.root()).value();
  CHECK(repository.ReadAtRef("main", "nothing", 9).value() == std::nullopt);
  CHECK(repository.ReadAtRef("main", "dir/nothing", 9).value() == std::nullopt);
  CHECK(repository.ReadAtRef("main", "dir/a/b", 9).value() == std::nullopt);
  auto missing = repository.ReadAtRef("release", "dir/a", 9);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Code::kNotFound);
  CHECK(missing.error().hint == "git fetch --depth=1 origin release");
  for (const char* path :
       {"link", "link/a", "dir", "../x", "/abs", "dir/../dir/a", ".git/config"}) {
    CAPTURE(path);
    auto refused = repository.ReadAtRef("main", path, 9);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kInvalid);
  }
}

TEST_CASE("ReadAtRef reports a missing object as an error, never as a missing file") {
  TestTree tree;
  tree.Write("dir/a", "x");
  tree.Commit({"dir/a"});
  // As in a partial clone, commits are there, but trees and blobs may not be.
  Repository before = Repository::Open(tree.root()).value();
  std::string commit = before.ResolveCommit("main").value();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.At(".git/objects"))) {
    std::string name =
        entry.path().parent_path().filename().string() + entry.path().filename().string();
    if (entry.is_regular_file() && name != commit) std::filesystem::remove(entry.path());
  }
  Repository repository = Repository::Open(tree.root()).value();
  auto read = repository.ReadAtRef("main", "dir/a", 9);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().code == Code::kNotFound);
}

TEST_CASE("A short name falls back to the branch fetched from origin") {
  TestTree tree;
  tree.Write("a", "x");
  tree.Commit({"a"}, "work");
  Repository repository = Repository::Open(tree.root()).value();
  std::string id = repository.ResolveCommit("work").value();
  CHECK(id.size() == 40);
  CHECK(CodeOf(repository.ResolveCommit("main")) == Code::kNotFound);
  tree.Write(".git/refs/remotes/origin/main", id + "\n");
  CHECK(repository.ResolveCommit("main").value() == id);
  CHECK(repository.ResolveCommit("origin/main").value() == id);
  CHECK(repository.ResolveCommit(id).value() == id);
  CHECK(CodeOf(repository.ResolveCommit(id.substr(0, 10))) == Code::kNotFound);
  CHECK(CodeOf(repository.ResolveCommit(std::string(40, '0'))) == Code::kNotFound);
}

TEST_CASE("A short name leads to no commit that whoever names a branch has chosen") {
  TestTree tree;
  tree.Write("a", "x");
  tree.Commit({"a"}, "work");
  Repository repository = Repository::Open(tree.root()).value();
  const std::string first = repository.ResolveCommit("HEAD").value();
  tree.Commit({"a"}, "work");
  const std::string second = repository.ResolveCommit("HEAD").value();
  REQUIRE(first != second);

  tree.Write(".git/refs/remotes/origin/main", first + "\n");
  tree.Write(".git/refs/heads/origin/main", second + "\n");
  Result<std::string> taken_over = repository.ResolveCommit("origin/main");
  REQUIRE_FALSE(taken_over.ok());
  CHECK(taken_over.error().code == Code::kInvalid);
  CHECK(taken_over.error().hint == "--policy-ref refs/remotes/origin/main");
  CHECK(repository.ResolveCommit("refs/remotes/origin/main").value() == first);
  CHECK(repository.ResolveCommit("refs/heads/origin/main").value() == second);
  tree.Write(".git/refs/heads/origin/main", first + "\n");
  CHECK(repository.ResolveCommit("origin/main").value() == first);

  tree.Write(".git/refs/tags/v1", first + "\n");
  for (const char* branch : {"refs/heads/v1", "refs/remotes/origin/v1"}) {
    CAPTURE(branch);
    tree.Write(std::string(".git/") + branch, second + "\n");
    CHECK(repository.ResolveCommit("v1").error().hint == "--policy-ref refs/tags/v1");
    std::filesystem::remove(tree.At(std::string(".git/") + branch));
    CHECK(repository.ResolveCommit("v1").value() == first);
  }
  // A branch is often behind the one that it follows, or ahead of it.
  tree.Write(".git/refs/heads/main", second + "\n");
  CHECK(repository.ResolveCommit("main").value() == second);
}

TEST_CASE("Ignores follows the checkout's .gitignore files, Tracks its index") {
  TestTree tree;
  tree.Write(".gitignore", "*.o\nbuild/\n!keep.o\n");
  tree.Write("sub/.gitignore", "local\n");
  tree.Write("tracked.o", "x");
  tree.Write("build/out/kept", "x");
  tree.Write("a", "x");
  tree.Commit({".gitignore", "a"});
  Repository repository = Repository::Open(tree.root()).value();
  CHECK(Ignores(repository, "x.o"));
  CHECK(Ignores(repository, "sub/deep/x.o"));
  CHECK(Ignores(repository, "build/"));
  CHECK(Ignores(repository, "build/out/x"));
  CHECK(Ignores(repository, "sub/local"));
  CHECK_FALSE(Ignores(repository, "local"));
  CHECK_FALSE(Ignores(repository, "keep.o"));
  CHECK_FALSE(Ignores(repository, "a"));
  CHECK(repository.Tracks("a"));
  CHECK_FALSE(repository.Tracks("tracked.o"));
  CHECK_FALSE(repository.TracksBeneath("build"));
}

TEST_CASE("The repository's own configuration moves nothing and hides nothing") {
  TestTree tree;
  TestTree elsewhere;
  elsewhere.Write("rules", "*\n");
  tree.Write("a", "x");
  tree.Commit({"a"});
  tree.Write(".git/config",
             "[core]\n\trepositoryformatversion = 1\n\tworktree = " + elsewhere.root() +
                 "\n\texcludesFile = " + elsewhere.At("rules") +
                 "\n[extensions]\n\tpartialClone = origin\n\tworktreeConfig = true\n"
                 "[remote \"origin\"]\n\turl = https://user:token@forge.example/group/x.git\n");
  Result<Repository> repository = Repository::Open(tree.root());
  REQUIRE(repository.ok());
  CHECK_FALSE(Ignores(repository.value(), "b"));
  CHECK(repository.value().Tracks("a"));
  CHECK(repository.value().OriginUrl() == "https://forge.example/group/x.git");
}

TEST_CASE("OriginUrl has no user in the short form either") {
  TestTree tree;
  tree.Write("a", "x");
  tree.Commit({"a"});
  CHECK(Repository::Open(tree.root()).value().OriginUrl().empty());
  tree.Write(".git/config", "[remote \"origin\"]\n\turl = git@forge.example:group/x.git\n");
  CHECK(Repository::Open(tree.root()).value().OriginUrl() == "forge.example:group/x.git");
}

}  // namespace
}  // namespace change
