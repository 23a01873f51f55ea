// SPDX-License-Identifier: Apache-2.0
#include "session/git_state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"
#include "image/unpack/layer_listing.h"
#include "session/inside_files.h"

namespace session {
namespace {

constexpr char kIndex[] = ".git/index";
constexpr size_t kFilesMax = 20'000;  // Whatever makes more has its own way with git.
constexpr int64_t kObjectBytesMax = int64_t{64} << 20;
constexpr size_t kBytesMax = size_t{512} << 20;

// A file that the sandbox has of its own or the checkout has, with the checkout's content, if any.
struct GitFile : InsideFile {
  std::string identity;  // Changes when the file does.
};

std::string IdentityOf(const struct stat& st) {
  return std::to_string(st.st_ino) + ":" + std::to_string(st.st_size) + ":" +
         std::to_string(st.st_mode) + ":" + std::to_string(st.st_mtim.tv_sec) + "." +
         std::to_string(st.st_mtim.tv_nsec);
}

// Returns whether git keeps its index, refs, reflogs or objects in the file. In any other, a step
// may have left credentials.
bool IsState(std::string_view path) {
  const std::string_view name = path.substr(std::string_view(".git/").size());
  const std::string_view top = name.substr(0, name.find('/'));
  if (top.size() < name.size()) return top == "refs" || top == "logs" || top == "objects";
  return name == "index" || name == "packed-refs" || name == "shallow" || name.ends_with("HEAD");
}

// Adds the files and whiteouts of an open directory, but for git's objects.
Status List(int directory, const std::string& path, int depth, std::vector<GitFile>* files) {
  if (depth == sys::kTreeDepthMax) return Error{Code::kInvalid, path + ": too many levels"};
  for (const std::string& name : TRY(sys::DirectoryNames(directory))) {
    std::string inner = path + "/" + name;
    struct stat st {};
    if (inner == ".git/objects" ||
        ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISDIR(st.st_mode)) {
      Fd deeper = TRY(sys::OpenAt(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(List(deeper.get(), inner, depth + 1, files));
    } else if (files->size() == kFilesMax) {
      return Error{Code::kInvalid, "too many files in .git"};
    } else {
      files->push_back({{inner}, IdentityOf(st)});
    }
  }
  return Ok();
}

// Returns what the sandbox's layer has in `.git`; nullopt if it hides the checkout's whole.
Result<std::optional<std::vector<GitFile>>> OwnFiles(const sandbox::Sandbox& sandbox) {
  using Found = std::optional<std::vector<GitFile>>;
  std::vector<GitFile> files;
  Result<Fd> git = sys::OpenBeneath(sandbox.upper(), ".git", O_RDONLY | O_DIRECTORY);
  if (!git.ok()) return Found(std::move(files));
  char value = 0;
  if (::fgetxattr(git.value().get(), image::kOpaqueXattr, &value, 1) == 1) return Found();
  TRY(List(git.value().get(), ".git", 0, &files));
  // The run puts its own there.
  std::erase_if(files, [&](const GitFile& file) {
    const auto& own = sandbox.inside().plan->workspace_files;
    return std::any_of(own.begin(), own.end(),
                       [&](const auto& one) { return one.path == file.path; });
  });
  return Found(std::move(files));
}

// Adds the objects that were made since the sandbox began. Nothing inside sees one in a directory
// that both have made.
Status AddObjects(int checkout, timespec since, std::vector<GitFile>* files) {
  Result<Fd> objects = sys::OpenBeneath(checkout, ".git/objects", O_RDONLY | O_DIRECTORY);
  if (!objects.ok()) return Ok();
  int64_t bytes = 0;
  for (const std::string& name : TRY(sys::DirectoryNames(objects.value().get()))) {
    Result<Fd> directory =
        sys::OpenAt(objects.value().get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!directory.ok() || name == "info") continue;
    for (const std::string& object : TRY(sys::DirectoryNames(directory.value().get()))) {
      struct stat st {};
      if (::fstatat(directory.value().get(), object.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
          st.st_mtim.tv_sec < since.tv_sec) {
        continue;
      }
      bytes += st.st_size;
      if (bytes > kObjectBytesMax) return Error{Code::kUnsupported, "too many new objects in .git"};
      files->push_back({{".git/objects/" + name + "/" + object}, ""});
    }
  }
  return Ok();
}

// Adds what a commit outside replaces. The sandbox may go on seeing what was replaced: overlayfs
// looks a name up once.
Status AddOutside(int checkout, std::vector<GitFile>* files) {
  for (const char* name : {"HEAD", "index", "packed-refs"}) {
    files->push_back({{std::string(".git/") + name}, ""});
  }
  Result<Fd> refs = sys::OpenBeneath(checkout, ".git/refs", O_RDONLY | O_DIRECTORY);
  return refs.ok() ? List(refs.value().get(), ".git/refs", 0, files) : Ok();
}

std::string InsideOf(const std::optional<std::vector<GitFile>>& files) {
  std::string all;
  if (!files) return all;
  for (const GitFile& file : *files) {
    if (!file.path.starts_with(kIndex)) all += file.path + " " + file.identity + "\n";
  }
  return all;
}

std::string OutsideOf(int checkout) {
  std::string all;
  for (const char* name : {"HEAD", "index", "logs/HEAD", "packed-refs"}) {
    struct stat st {};
    bool there = ::fstatat(checkout, (".git/" + std::string(name)).c_str(), &st, 0) == 0;
    all += (there ? IdentityOf(st) : "none") + "\n";
  }
  return all;
}

Status ReadOutside(int checkout, GitFile* file) {
  Result<Fd> opened = sys::OpenBeneath(checkout, file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat st {};
  if (!opened.ok() || ::fstat(opened.value().get(), &st) != 0 || !S_ISREG(st.st_mode)) return Ok();
  file->text = TRY(sys::ReadAll(opened.value().get(), kBytesMax).Context(file->path));
  file->mode = st.st_mode & 0777;
  return Ok();
}

}  // namespace

Status GitState::Follow(const sandbox::Sandbox& sandbox) {
  if (sandbox.copied()) return Ok();
  const sandbox::SandboxPlan& plan = *sandbox.inside().plan;
  Fd checkout = TRY(sys::Open(plan.checkout, O_RDONLY | O_DIRECTORY));
  std::string outside =
      OutsideOf(checkout.get());  // Before it is read: what changes later is newer.
  std::vector<GitFile> files;
  // Also where the sandbox has nothing of its own: it may go on seeing what was replaced.
  if (std::optional<std::vector<GitFile>> own = TRY(OwnFiles(sandbox))) {
    TRY(AddObjects(checkout.get(), sandbox.began(), &files));  // Before what refers to them.
    TRY(AddOutside(checkout.get(), &files));
    // A file that is not git's state stays as the sandbox has it, unless the checkout has none.
    std::erase_if(*own, [&](const GitFile& file) {
      return !IsState(file.path) && sys::ExistsAt(checkout.get(), file.path);
    });
    std::move(own->begin(), own->end(), std::back_inserter(files));
  }
  std::vector<InsideFile> written;
  for (GitFile& file : files) {
    if (IsState(file.path)) TRY(ReadOutside(checkout.get(), &file));
    written.push_back(std::move(file));
  }
  TRY(WriteInside(sandbox, written));
  follows_ = true;
  outside_ = std::move(outside);
  inside_ = InsideOf(TRY(OwnFiles(sandbox)));
  return Ok();
}

bool GitState::IsStale(const sandbox::Sandbox& sandbox) const {
  if (!follows_) return false;
  Result<Fd> checkout = sys::Open(sandbox.inside().plan->checkout, O_RDONLY | O_DIRECTORY);
  if (!checkout.ok() || OutsideOf(checkout.value().get()) == outside_) return false;
  Result<std::optional<std::vector<GitFile>>> files = OwnFiles(sandbox);
  return files.ok() && InsideOf(files.value()) == inside_;
}

}  // namespace session
