// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/trusted_file.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/sys.h"
#include "codec/text/shell_word.h"

namespace run {
namespace {

Result<std::optional<std::string>> ReadInWorktree(const std::string& top, const std::string& path,
                                                  size_t bytes_max) {
  Fd directory = TRY(sys::Open(top, O_RDONLY | O_DIRECTORY));
  Result<Fd> file = sys::OpenBeneath(directory.get(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok() && file.error().code == Code::kNotFound) return std::optional<std::string>();
  if (!file.ok()) return std::move(file).error();
  std::string text = TRY(sys::ReadAll(file.value().get(), bytes_max));
  return std::optional<std::string>(std::move(text));
}

// Returns `name` in lower case, with letters and digits only.
std::string Folded(std::string_view name) {
  std::string folded;
  for (char c : name) {
    if (ascii::IsAlphanumeric(c)) folded += ascii::ToLower(c);
  }
  return folded;
}

// Returns whether the folded name is that of a YAML or JSON file with this folded stem.
bool IsOneOf(std::string_view folded, const std::string& stem) {
  return folded == stem + "yml" || folded == stem + "yaml" || folded == stem + "json";
}

Result<std::vector<std::string>> Names(const change::Repository* repository,
                                       const std::string& checkout, const TrustedRef& ref,
                                       const std::string& directory) {
  if (ref.ref != kWorktree) {
    if (repository == nullptr || (ref.assumed && repository->unborn())) {
      return std::vector<std::string>();
    }
    return repository->NamesAtRef(ref.ref, directory);
  }
  const std::string& top = repository != nullptr ? repository->top() : checkout;
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(std::filesystem::path(top) / directory, failed), end;
       !failed && at != end; at.increment(failed)) {
    names.push_back(at->path().filename());
  }
  return names;
}

Status CheckNotRefused(const change::Repository& repository, const TrustedRef& ref,
                       const std::string& commit) {
  if (ref.refused.empty()) return Ok();
  std::vector<std::string> shown = TRY(repository.ParentsOf(commit));
  shown.push_back(commit);
  for (const std::string& id : shown) {
    if (std::ranges::find(ref.refused, id) != ref.refused.end()) return RefuseProposed(ref.ref);
  }
  return Ok();
}

}  // namespace

Error RefuseProposed(const std::string& ref) {
  return Error{Code::kRefused, ref + " is what the pull request itself proposes",
               "--policy-ref refs/remotes/origin/BRANCH, with the branch to be merged into"};
}

Result<TrustedFile> ReadTrustedFile(const change::Repository* repository,
                                    const std::string& checkout, const TrustedRef& ref,
                                    const std::string& path, size_t bytes_max) {
  TrustedFile result;
  const std::string& top = repository != nullptr ? repository->top() : checkout;
  if (ref.ref == kWorktree) {
    result.text = TRY(ReadInWorktree(top, path, bytes_max).Context("reading " + path));
    return result;
  }
  if (repository != nullptr && !(ref.assumed && repository->unborn())) {
    Result<std::string> commit = repository->ResolveCommit(ref.ref);
    if (!commit.ok() && commit.error().code == Code::kNotFound && !ref.fetch.empty()) {
      return Error{Code::kNotFound, std::move(commit).error().what, ref.fetch};
    }
    result.commit = TRY(std::move(commit));
    TRY(CheckNotRefused(*repository, ref, result.commit));
    result.text = TRY(repository->ReadAtRef(ref.ref, path, bytes_max));
  }
  if (!ref.assumed) return result;
  // One that cannot be read is not the text at HEAD either.
  Result<std::optional<std::string>> worktree = ReadInWorktree(top, path, bytes_max);
  result.worktree_differs = !worktree.ok() || (worktree.value() && worktree.value() != result.text);
  return result;
}

Status CheckSpelling(const change::Repository* repository, const std::string& checkout,
                     const TrustedRef& ref, const std::string& path,
                     const std::vector<std::string>& other_names) {
  const size_t slash = path.find('/');
  const std::string directory = path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  const std::string stem = name.substr(0, name.rfind('.'));
  auto names_in = [&](const std::string& at) { return Names(repository, checkout, ref, at); };
  auto meant = [&](const std::string& other) {
    const std::string folded = Folded(other);
    bool any = IsOneOf(folded, Folded(stem));
    for (const std::string& one : other_names) any |= IsOneOf(folded, Folded(one));
    return any && other != name;
  };
  auto misspelt = [&](const std::string& other, const std::string& right) {
    return Error{Code::kInvalid, other + " is not read: its name has to be " + right,
                 "git mv " + codec::ShellArgument(other) + " " + codec::ShellArgument(right)};
  };
  for (const std::string& top : TRY(names_in(""))) {
    const std::string folded = Folded(top);
    if (!folded.starts_with(Folded(directory))) continue;
    // A file: ".agentic-ci.yml".
    if (top != directory && top.starts_with('.') && IsOneOf(folded, Folded(directory))) {
      Error error = misspelt(top, path);
      error.hint = "mkdir -p " + directory + " && " + error.hint;
      return error;
    }
    if (folded != Folded(directory)) continue;
    const bool right = top == directory;
    for (const std::string& other : TRY(names_in(top))) {
      // Without the dot it may be anything, but for a file of a name that nothing else has.
      const bool hidden = top.starts_with('.') || Folded(other).starts_with("openshellpolicy");
      if (hidden && (meant(other) || (!right && other == name))) {
        return misspelt(top + "/" + other, path);
      }
    }
  }
  return Ok();
}

}  // namespace run
