// SPDX-License-Identifier: Apache-2.0
// Directories for the unit tests of this folder: a checkout, and an upper layer made by hand.
#pragma once

#include <fcntl.h>
#include <git2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/sys.h"
#include "change/git_handle.h"

namespace change {

// A temporary directory, removed with everything in it.
class TestTree {
 public:
  TestTree() {
    char name[] = "/tmp/change_test.XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    root_ = name;
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;
  ~TestTree() { std::filesystem::remove_all(root_); }

  const std::string& root() const { return root_; }
  std::string At(const std::string& path) const { return root_ + "/" + path; }

  void Write(const std::string& path, const std::string& bytes, mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(At(path)).parent_path());
    std::ofstream(At(path), std::ios::binary) << bytes;
    REQUIRE(::chmod(At(path).c_str(), mode) == 0);
  }
  void Link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(At(path)).parent_path());
    REQUIRE(::symlink(target.c_str(), At(path).c_str()) == 0);
  }
  void Directory(const std::string& path) const { std::filesystem::create_directories(At(path)); }
  // A 0/0 character device needs no privilege since Linux 5.8.
  void Whiteout(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(At(path)).parent_path());
    REQUIRE(::mknod(At(path).c_str(), S_IFCHR, makedev(0, 0)) == 0);
  }
  std::string Read(const std::string& path) const {
    std::ifstream in(At(path), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  bool Has(const std::string& path) const { return sys::Exists(At(path)); }
  mode_t Mode(const std::string& path) const {
    struct stat st {};
    REQUIRE(::lstat(At(path).c_str(), &st) == 0);
    return st.st_mode;
  }

  // Makes it a repository whose index and newest commit, on `branch`, hold `paths`.
  void Commit(const std::vector<std::string>& paths, const std::string& branch = "main") const {
    REQUIRE(StartGit().ok());
    git_repository_init_options options;
    git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
    options.flags = GIT_REPOSITORY_INIT_MKPATH;
    options.initial_head = branch.c_str();
    git_repository* raw = nullptr;
    REQUIRE(git_repository_init_ext(&raw, root_.c_str(), &options) == 0);
    GitRepository repository(raw);
    git_index* raw_index = nullptr;
    REQUIRE(git_repository_index(&raw_index, raw) == 0);
    GitIndex index(raw_index);
    REQUIRE(git_index_clear(raw_index) == 0);
    for (const std::string& path : paths)
      REQUIRE(git_index_add_bypath(raw_index, path.c_str()) == 0);
    git_oid tree_id;
    REQUIRE(git_index_write(raw_index) == 0);
    REQUIRE(git_index_write_tree(&tree_id, raw_index) == 0);
    git_tree* raw_tree = nullptr;
    REQUIRE(git_tree_lookup(&raw_tree, raw, &tree_id) == 0);
    GitTree tree(raw_tree);
    git_signature* author = nullptr;
    REQUIRE(git_signature_new(&author, "t", "t@example.org", 1700000000, 0) == 0);
    git_oid commit;
    git_commit* raw_parent = nullptr;
    if (git_reference_name_to_id(&commit, raw, "HEAD") == 0) {
      REQUIRE(git_commit_lookup(&raw_parent, raw, &commit) == 0);
    }
    GitCommit parent(raw_parent);
    int status = git_commit_create_v(&commit, raw, "HEAD", author, author, nullptr, "test",
                                     raw_tree, parent ? 1 : 0, raw_parent);
    git_signature_free(author);
    REQUIRE(status == 0);
  }

  // Puts a submodule at `path` into the index of what Commit() made.
  void AddSubmodule(const std::string& path) const {
    git_repository* raw = nullptr;
    REQUIRE(git_repository_open(&raw, root_.c_str()) == 0);
    GitRepository repository(raw);
    git_index* raw_index = nullptr;
    REQUIRE(git_repository_index(&raw_index, raw) == 0);
    GitIndex index(raw_index);
    git_index_entry entry{};
    entry.mode = GIT_FILEMODE_COMMIT;
    entry.path = path.c_str();
    REQUIRE(git_oid_fromstr(&entry.id, std::string(40, '1').c_str()) == 0);
    REQUIRE(git_index_add(raw_index, &entry) == 0);
    REQUIRE(git_index_write(raw_index) == 0);
  }

 private:
  std::string root_;
};

}  // namespace change
