// SPDX-License-Identifier: Apache-2.0
#include "run/shown/git_copy.h"

#include <fcntl.h>

#include <utility>

#include "base/fd.h"
#include "base/sys.h"
#include "base/tree.h"
#include "change/git_pointer.h"
#include "codec/text/git_config.h"

namespace run {
namespace {

constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr size_t kFileBytesMax = size_t{64} << 20;
constexpr size_t kFilesMax = 20'000;
constexpr int kDepthMax = 16;

class GitCopy {
 public:
  GitCopy(const GitFiles& git, const std::string& checkout) : git_(git), checkout_(checkout) {}

  Result<std::vector<sandbox::WorkspaceFile>> Make() {
    for (const char* name : {"HEAD", "index", "info/sparse-checkout"}) {
      TRY(Take(git_.own + "/" + name, name));
    }
    for (const char* name : {"packed-refs", "shallow", "info/exclude", "info/attributes",
                             "refs/stash", "logs/refs/stash"}) {
      TRY(Take(git_.common + "/" + name, name));
    }
    for (const char* name : {"refs/heads", "refs/tags", "refs/remotes"}) {
      TRY(TakeTree(name, kDepthMax));
    }
    Put("config", TRY(Configuration()));
    Put("objects/info/alternates", git_.common + "/objects\n");
    Put("refs/.keep", "");  // Git wants the directory.
    return std::move(files_);
  }

 private:
  void Put(const std::string& name, std::string text) {
    files_.push_back({".git/" + name, std::move(text)});
  }

  Status Take(const std::string& path, const std::string& name) {
    if (files_.size() >= kFilesMax) return Error{Code::kInvalid, "too many references"};
    if (!sys::Exists(path)) return Ok();
    Put(name, TRY(change::ReadGitText(path, kFileBytesMax)));
    return Ok();
  }

  Status TakeTree(const std::string& name, int depth) {
    Result<Fd> opened = sys::Open(git_.common + "/" + name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened.ok() && sys::IsAbsent(opened.error())) return Ok();
    const Fd directory = TRY(std::move(opened));
    if (depth == 0) return Error{Code::kInvalid, name + " is too deep"};
    for (const std::string& entry : TRY(sys::DirectoryNames(directory.get()))) {
      const std::string inside = name + "/" + entry;
      bool tree = sys::OpenBeneath(directory.get(), entry, O_PATH | O_DIRECTORY).ok();
      TRY(tree ? TakeTree(inside, depth - 1) : Take(git_.common + "/" + inside, inside));
    }
    return Ok();
  }

  // The later line counts: this directory stands where its working tree is.
  Result<std::string> Configuration() const {
    std::string text;
    for (const std::string& path : {git_.common + "/config", git_.own + "/config.worktree"}) {
      if (!sys::Exists(path)) continue;
      text += codec::RedactGitConfig(TRY(change::ReadGitText(path, kConfigBytesMax)), checkout_);
    }
    return text + "[core]\n\tbare = false\n";
  }

  const GitFiles& git_;
  const std::string& checkout_;
  std::vector<sandbox::WorkspaceFile> files_;
};

}  // namespace

Result<std::vector<sandbox::WorkspaceFile>> CopyGitDirectory(const GitFiles& git,
                                                             const std::string& checkout) {
  return GitCopy(git, checkout).Make();
}

}  // namespace run
