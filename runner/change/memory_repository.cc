// SPDX-License-Identifier: Apache-2.0
#include "change/memory_repository.h"

#include <git2/sys/mempack.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>

#include <utility>

namespace change {

Result<MemoryRepository> MemoryRepository::Create() {
  TRY(StartGit());
  git_odb* raw_odb = nullptr;
  if (git_odb_new(&raw_odb) != 0) return GitError(Code::kBug, "making an object store");
  GitOdb odb(raw_odb);
  git_odb_backend* backend = nullptr;
  if (git_mempack_new(&backend) != 0) return GitError(Code::kBug, "making an object store");
  if (git_odb_add_backend(raw_odb, backend, 1) != 0) {  // Owns the backend, also when it fails.
    return GitError(Code::kBug, "making an object store");
  }
  git_repository* raw = nullptr;
  if (git_repository_wrap_odb(&raw, raw_odb) != 0) {
    return GitError(Code::kBug, "making a repository in memory");
  }
  GitRepository repository(raw);
  git_config* raw_config = nullptr;
  git_index* raw_index = nullptr;
  if (git_config_new(&raw_config) != 0) return GitError(Code::kBug, "making a configuration");
  GitConfig config(raw_config);
  if (git_index_new(&raw_index) != 0) return GitError(Code::kBug, "making an index");
  GitIndex index(raw_index);
  if (git_repository_set_config(raw, raw_config) != 0 ||
      git_repository_set_index(raw, raw_index) != 0) {
    return GitError(Code::kBug, "making a repository in memory");
  }
  return MemoryRepository(std::move(repository));
}

Result<git_oid> MemoryRepository::AddBlob(std::string_view bytes) {
  git_oid id;
  if (git_blob_create_from_buffer(&id, get(), bytes.data(), bytes.size()) != 0) {
    return GitError(Code::kIo, "storing a file in memory");
  }
  return id;
}

Result<std::string> MemoryRepository::ReadBlob(const git_oid& id) const {
  git_blob* raw = nullptr;
  if (git_blob_lookup(&raw, get(), &id) != 0)
    return GitError(Code::kBug, "reading a file in memory");
  GitBlob blob(raw);
  return std::string(static_cast<const char*>(git_blob_rawcontent(raw)),
                     static_cast<size_t>(git_blob_rawsize(raw)));
}

Result<GitTree> MemoryRepository::MakeTree(const TreeEntries& entries) {
  git_index* raw_index = nullptr;
  if (git_index_new(&raw_index) != 0) return GitError(Code::kBug, "making an index");
  GitIndex index(raw_index);
  for (const auto& [path, entry] : entries) {  // The index's own order makes each add an append.
    git_index_entry item{};
    item.path = path.c_str();
    item.id = entry.id;
    item.mode = static_cast<uint32_t>(entry.mode);
    if (git_index_add(raw_index, &item) != 0) {
      return GitError(Code::kInvalid, "adding a path to a tree");
    }
  }
  git_oid id;
  if (git_index_write_tree_to(&id, raw_index, get()) != 0) {
    return GitError(Code::kInvalid, "writing a tree");
  }
  git_tree* tree = nullptr;
  if (git_tree_lookup(&tree, get(), &id) != 0) return GitError(Code::kBug, "reading a tree");
  return GitTree(tree);
}

Result<git_oid> MemoryRepository::MakeCommit(const TreeEntries& entries) {
  GitTree tree = TRY(MakeTree(entries));
  git_signature* author = nullptr;
  if (git_signature_new(&author, "agentic-ci", "agentic-ci@localhost", 0, 0) != 0) {
    return GitError(Code::kBug, "making a signature");
  }
  git_oid id;
  int status =
      git_commit_create(&id, get(), nullptr, author, author, nullptr, "", tree.get(), 0, nullptr);
  git_signature_free(author);
  if (status != 0) return GitError(Code::kBug, "storing a commit in memory");
  return id;
}

}  // namespace change
