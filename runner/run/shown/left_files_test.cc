// SPDX-License-Identifier: Apache-2.0
#include "run/shown/left_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "change/test_tree.h"
#include "policy/model/credential_places.h"

namespace run {
namespace {

using Paths = std::vector<std::string>;

struct Left : change::TestTree {
  LeftFiles Look(const std::string& report = "") const {
    Result<LeftFiles> found = FindLeftFiles(root(), report);
    INFO((found.ok() ? "" : found.error().what));
    REQUIRE(found.ok());
    return std::move(found).value();
  }
  Paths Credentials() const { return Look().credentials; }
  void Add(const Paths& paths) const {
    for (const std::string& path : paths) Write(path, "x\n");
  }
};

TEST_CASE("Files by names under which programs keep credentials are found wherever they lie") {
  Left left;
  left.Add({".netrc", "a/b/.git-credentials", "a/.docker/config.json", "gha-creds-12.json",
            "home/.ssh/id_x", "home/.aws/sso/cache/token"});
  // Not those.
  left.Add({"x.netrc", "docker/config.json", "config.json", "gha-creds-12.txt", "credentials",
            "aws/credentials", ".gitignore", "ssh/.sshrc"});
  CHECK(left.Credentials() == Paths{".netrc", "a/.docker/config.json", "a/b/.git-credentials",
                                    "gha-creds-12.json", "home/.aws/sso/cache/token",
                                    "home/.ssh/id_x"});
}

TEST_CASE("Settings are credentials where they look like holding one") {
  Left left;
  left.Write("a/.npmrc", "package-lock=false\n@acme:registry=https://r.example/\n");
  CHECK(left.Credentials().empty());
  left.Write("b/.npmrc", "//r.example/:_authToken=x\n");
  left.Write("c/.npmrc", "registry=https://me:x@r.example/\n");
  left.Write("d/pip.conf", "index-url = https://u:PASS@r/\n");
  CHECK(left.Credentials() == Paths{"b/.npmrc", "c/.npmrc", "d/pip.conf"});
}

TEST_CASE(
    "Every place that is withheld or that a hostile agent would read is found in a checkout") {
  Left left;
  Paths expected;
  auto add = [&](const std::string& path) {
    expected.push_back(std::to_string(expected.size()) + "/" + path);
    left.Write(expected.back(), "token\n");
  };
  for (const policy::CredentialPlace& place : policy::kCredentialPlaces) {
    const std::string path(place.path);
    if (path.starts_with('/') || place.uses == policy::kHide) continue;
    add(path);
    if ((place.uses & policy::kWithhold) != 0) add(path + "/deep/er");
  }
  std::sort(expected.begin(), expected.end());
  CHECK(expected.size() > 50);
  CHECK(left.Credentials() == expected);
}

TEST_CASE("A link by such a name stands for the file that it leads to in the checkout") {
  Left left;
  left.Add({"kept/token"});
  left.Link(".netrc", "kept/token");
  left.Link("_netrc", "/etc/passwd");
  left.Link(".pgpass", "nowhere");
  left.Directory(".pypirc");
  CHECK(left.Credentials() == Paths{"kept/token"});
}

TEST_CASE("So does a link by the name of a directory that credentials are kept in") {
  Left left;
  left.Add(
      {"conf/config.json", "conf/other", "keys/id_x", "keys/deep/er", "xdg/gh/hosts.yml", "a/b"});
  CHECK(left.Credentials().empty());
  left.Link(".docker", "conf");
  left.Link("home/.ssh", "../keys");
  left.Link(".config", left.At("xdg"));
  left.Link(".aws", "/etc");  // Outside.
  left.Link(".kube", "nowhere");
  left.Link(".cargo", ".cargo");
  CHECK(left.Credentials() ==
        Paths{"conf/config.json", "keys/deep/er", "keys/id_x", "xdg/gh/hosts.yml"});
  left.Link("keys/.azure", "../keys");
  left.Link(".gnupg", ".");           // The checkout itself is not a directory of credentials,
  left.Link("home/.aws", "../.git");  // and neither is git's.
  left.Add({".git/HEAD"});
  CHECK(left.Credentials() ==
        Paths{"conf/config.json", "keys/deep/er", "keys/id_x", "xdg/gh/hosts.yml"});
}

TEST_CASE("Further repositories are found by their git directories, and objects not looked into") {
  Left left;
  for (const std::string git : {".git", "other/.git", "deep/er/mirror.git"}) {
    left.Add({git + "/HEAD", git + "/refs/heads/main", git + "/objects/ab/.netrc"});
  }
  left.Add({"empty/.git/config", "module/.git"});
  const LeftFiles found = left.Look();
  CHECK(found.credentials.empty());
  CHECK(found.repositories ==
        Paths{left.At("deep/er/mirror.git"), left.At("empty/.git"), left.At("other/.git")});
}

TEST_CASE("A git directory is recognised where its objects or refs are links") {
  Left left;
  left.Add({"a.git/HEAD", "a.git/credentials", "a.git/refs/heads/main", "b.git/HEAD",
            "b.git/credentials", "b.git/objects/ab/x", "c.git/HEAD", "c.git/credentials"});
  left.Link("a.git/objects", "../store/objects");
  left.Link("b.git/refs", "../store/refs");
  left.Link("c.git/refs", "../store/refs");  // No objects: not one.
  const LeftFiles found = left.Look();
  CHECK(found.repositories == Paths{left.At("a.git"), left.At("b.git")});
  CHECK(found.credentials == Paths{"a.git/credentials", "b.git/credentials"});
}

TEST_CASE("Submodules may be called as a part of a git directory is") {
  Left left;
  Paths expected;
  for (const std::string top : {".git", "other/.git"}) {
    left.Add({top + "/HEAD", top + "/refs/heads/main", top + "/objects/ab/credentials"});
    for (const std::string name : {"HEAD/x", "objects/refs/y", "objects/x", "refs/x"}) {
      const std::string git = top + "/modules/" + name;
      left.Add({git + "/HEAD", git + "/refs/heads/main", git + "/objects/ab/credentials",
                git + "/credentials"});
      expected.push_back(git + "/credentials");
    }
  }
  CHECK(left.Credentials() == expected);
}

TEST_CASE("What belongs to others is named, but for the report's directory") {
  if (::geteuid() != 0) return;  // Nothing can be given to others.
  Left left;
  left.Add({"a/file", "report/run.json", ".git/objects/00/x", ".git/index"});
  const std::string report = left.At("report");
  REQUIRE(::chown(report.c_str(), 4321, 4321) == 0);
  REQUIRE(::chown(left.At(".git/objects/00").c_str(), 4321, 4321) == 0);
  CHECK(left.Look().foreign == "report belongs to 4321:4321");
  CHECK(left.Look(report).foreign.empty());
  REQUIRE(::chown(left.At(".git/index").c_str(), 0, 4322) == 0);
  CHECK(left.Look(report).foreign == ".git/index belongs to 0:4322");
}

TEST_CASE("A tree that is too deep to be looked through is refused, by its name") {
  Left left;
  std::string path = "a/top/";
  for (int i = 0; i < 254; ++i) path += "d/";
  left.Add({path + ".netrc", "e/.netrc", ".netrc"});
  CHECK(left.Credentials() == Paths{".netrc", path + ".netrc", "e/.netrc"});
  left.Add({path + "d/file"});
  const Result<LeftFiles> found = FindLeftFiles(left.root());
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code == Code::kRefused);
  CHECK(found.error().what.starts_with("a/top/d/d/"));
  CHECK(found.error().hint == "rm -r '" + left.At(path + "d") + "'");
}

TEST_CASE("A directory that its owner closed is refused, by its name") {
  if (::geteuid() == 0) return;  // Root reads it. As another user: tests/kernel.
  Left left;
  left.Add({"a/closed/.netrc", "a/closed/sub/.netrc"});
  for (const mode_t mode : {0U, 0111U, 0444U}) {
    REQUIRE(::chmod(left.At("a/closed").c_str(), mode) == 0);
    const Result<LeftFiles> found = FindLeftFiles(left.root());
    REQUIRE(::chmod(left.At("a/closed").c_str(), 0755) == 0);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code == Code::kRefused);
    CHECK(found.error().hint == "chmod u+rx '" + left.At("a/closed") + "'");
  }
  CHECK(left.Credentials() == Paths{"a/closed/.netrc", "a/closed/sub/.netrc"});
}

TEST_CASE("Credentials in git directories are found by the names that they have there") {
  Left left;
  const std::string config = "[http]\n\textraheader = AUTHORIZATION: x\n";
  Paths expected;
  for (const std::string git : {".git", ".git/modules/a", "mirror.git", "other/.git"}) {
    left.Add({git + "/HEAD", git + "/objects/ab/x", git + "/refs/heads/credentials",
              git + "/refs/heads/config", git + "/logs/refs/heads/credentials"});
    for (const std::string name : {"credentials", ".git-credentials", "gha-creds-12.json"}) {
      left.Add({git + "/" + name});
      expected.push_back(git + "/" + name);
    }
    for (const std::string name : {"config.lock", "config~", "config.worktree.bak"}) {
      left.Write(git + "/" + name, config);
      expected.push_back(git + "/" + name);
    }
    left.Write(git + "/config.old", "[core]\n\tbare = false\n");
    left.Write(git + "/config", config);  // FindGitFiles() is for these.
  }
  left.Link(".git/.config", "x");
  left.Add({".git/x/gh/hosts.yml", "other/.git/worktrees/w/credentials"});
  left.Add({".git/.docker/config.json", ".git/worktrees/w/HEAD", ".git/worktrees/w/credentials",
            ".git/refs/heads/_netrc", "other/.git/refs/heads/_netrc",
            ".git/refs/remotes/origin/gha-creds-12.json", "credentials", "config.lock",
            "src/config.bak"});
  expected.insert(expected.end(), {".git/.docker/config.json", ".git/worktrees/w/credentials",
                                   ".git/x/gh/hosts.yml", "other/.git/worktrees/w/credentials"});
  std::sort(expected.begin(), expected.end());
  CHECK(left.Credentials() == expected);
  Result<LeftFiles> own = FindLeftFiles(left.At(".git"), "", nullptr, true);
  REQUIRE(own.ok());
  CHECK(own.value().credentials.size() == 15);
}

TEST_CASE("Links lead from one to the next, also in a circle") {
  Left left;
  left.Add({"dir/hosts.yml", "conf/other", "sub/x", "aws/credentials", "hosts.yml"});
  left.Link(".config", "conf");
  left.Link("conf/gh", "../dir");
  left.Link(".aws", "aws");
  left.Link("aws/sso", "../sub");
  left.Link("conf/.config", "../conf");
  left.Link("sub/back", "../aws");
  left.Link("a/.config", "..");
  left.Link("gh", ".");
  for (int i = 0; i < 60; ++i) {  // More than the kernel follows.
    left.Link("chain/" + std::to_string(i) + "/.config", "../" + std::to_string(i + 1));
  }
  CHECK(left.Credentials() == Paths{"aws/credentials", "dir/hosts.yml", "hosts.yml", "sub/x"});
}

TEST_CASE("Many directories are looked through as few are") {
  Left left;
  Paths expected;
  for (int i = 100; i < 300; ++i) {
    const std::string directory = "d" + std::to_string(i) + "/sub";
    left.Add({directory + "/file", directory + "/.npmrc.txt", directory + "/.netrc"});
    expected.push_back(directory + "/.netrc");
  }
  CHECK(left.Credentials() == expected);
}

TEST_CASE("What is withheld is given as in HEAD, or as gone") {
  Left left;
  left.Add({"same", "changed"});
  left.Commit({"same", "changed"});
  left.Write("changed", "token\n");
  left.Write("new", "token\n");
  const Result<change::Repository> repository = change::Repository::Open(left.root());
  REQUIRE(repository.ok());
  const auto files = WithholdFiles(&repository.value(), left.root(), {"same", "changed", "new"});
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "changed");
  CHECK(files[0].content.get() == "x\n");
  CHECK_FALSE(files[0].gone);
  CHECK(files[1].path == "new");
  CHECK(files[1].gone);
  // Nothing is known without a repository.
  CHECK(WithholdFiles(nullptr, left.root(), {"same"}).at(0).gone);
}

}  // namespace
}  // namespace run
