// SPDX-License-Identifier: Apache-2.0
#include "run/shown/base_instructions.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/sys.h"
#include "change/protected_path.h"

namespace run {
namespace {

constexpr size_t kInstructionBytesMax = size_t{1} << 20;
constexpr size_t kInstructionsMax = 1000;
constexpr int kHopsMax = 40;
constexpr int kInstructionDepthMax = 8;  // The depth of directories such as `.claude/`.

std::string ParentOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

class InstructionSearch {
 public:
  InstructionSearch(const change::Repository& repository, const std::string& checkout,
                    const std::string& ref)
      : repository_(repository), checkout_(checkout), ref_(ref) {}

  Result<std::vector<sandbox::WorkspaceFile>> Run() {
    std::vector<std::string> differing = TRY(repository_.DifferingPaths(ref_));
    for (const std::string& path : differing) {
      if (!path.starts_with(repository_.prefix())) continue;
      std::string inside = path.substr(repository_.prefix().size());
      if (change::IsAgentInstruction(inside)) candidates_.insert(inside);
    }
    if (!differing.empty()) TRY(AddLinks(differing));
    TRY(List("", 0));
    TRY(List(".github", 0));
    std::vector<sandbox::WorkspaceFile> files;
    for (const std::string& path : candidates_) {
      std::optional<sandbox::WorkspaceFile> file = TRY(Compare(path));
      if (file) files.push_back(*std::move(file));
    }
    return files;
  }

 private:
  std::string OnDisk(const std::string& path) const { return checkout_ + "/" + path; }

  std::optional<mode_t> TypeOf(const std::string& path) const {
    struct stat st {};
    if (::lstat(OnDisk(path).c_str(), &st) != 0) return std::nullopt;
    return st.st_mode & S_IFMT;
  }

  // Adds the instructions in `directory`, and in what directories of them are there.
  Status List(const std::string& directory, int depth) {
    if (depth > kInstructionDepthMax) {
      return Error{Code::kInvalid, directory + " is nested too deeply for agent instructions"};
    }
    if (!directory.empty() && TypeOf(directory) != S_IFDIR) return Ok();
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(OnDisk(directory).c_str()), ::closedir);
    if (stream == nullptr) return Ok();  // The agent cannot read what the runner cannot.
    while (const dirent* entry = ::readdir(stream.get())) {
      std::string name = entry->d_name;
      std::string path = directory.empty() ? name : directory + "/" + name;
      if (name == "." || name == ".." || !change::IsAgentInstruction(path)) continue;
      if (TypeOf(path) == S_IFDIR) {
        TRY(List(path, depth + 1));
      } else {
        candidates_.insert(path);
      }
      if (candidates_.size() > kInstructionsMax) return TooMany();
    }
    return Ok();
  }

  static Error TooMany() {
    return {Code::kInvalid,
            "more than " + std::to_string(kInstructionsMax) + " files of agent instructions"};
  }

  // Adds links that are instructions and may lead to something else than at the trusted commit,
  // though they are the same. `differing` is sorted.
  Status AddLinks(const std::vector<std::string>& differing) {
    for (const std::string& path : TRY(repository_.TrackedLinks())) {
      if (!path.starts_with(repository_.prefix())) continue;
      std::string inside = path.substr(repository_.prefix().size());
      if (!change::IsAgentInstruction(inside) || !LeadsToAny(path, differing)) continue;
      candidates_.insert(std::move(inside));
      if (candidates_.size() > kInstructionsMax) return TooMany();
    }
    return Ok();
  }

  // Returns whether the link may lead to, into or through one of the paths, all relative to the
  // top.
  bool LeadsToAny(const std::string& link, const std::vector<std::string>& paths) const {
    std::string text = sys::ReadLink(repository_.top() + "/" + link).value_or("");
    if (change::LinkMayLeave(link, text)) return true;
    const std::string target = Resolve(ParentOf(link), text);
    Result<std::string> real = sys::RealPath(repository_.top() + "/" + link);
    // By further links on the way: they are not looked at one by one.
    if (!real.ok() || real.value() != repository_.top() + "/" + target) return true;
    for (size_t end = target.find('/'); end != std::string::npos; end = target.find('/', end + 1)) {
      if (std::binary_search(paths.begin(), paths.end(), target.substr(0, end))) return true;
    }
    const auto beneath = std::lower_bound(paths.begin(), paths.end(), target + "/");
    return std::binary_search(paths.begin(), paths.end(), target) ||
           (beneath != paths.end() && beneath->starts_with(target + "/"));
  }

  // Returns the text of `path` at the trusted commit, links followed; nullopt if there is no file.
  Result<std::optional<std::string>> AtBase(const std::string& path) const {
    using Found = std::optional<std::string>;
    std::string place = repository_.prefix() + path;
    bool is_link = false;
    for (int hops = 0; hops < kHopsMax; ++hops) {
      Result<std::optional<std::string>> link = repository_.ReadLinkAtRef(ref_, place);
      if (!link.ok() || !link.value()) break;
      if (change::LinkMayLeave(place, *link.value())) return Found();
      place = Resolve(ParentOf(place), *link.value());
      is_link = true;
    }
    Result<Found> text = repository_.ReadAtRef(ref_, place, kInstructionBytesMax);
    if (!text.ok() && is_link) return Found();
    // A directory there is no file; what is in it is looked at by itself.
    if (!text.ok() && text.error().kind == ErrorKind::kDirectory) return Found();
    return text;
  }

  // LinkMayLeave() was asked: `..` stand only at the beginning.
  static std::string Resolve(std::string directory, std::string_view target) {
    while (!target.empty()) {
      size_t slash = target.find('/');
      std::string_view part = target.substr(0, slash);
      target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        directory = ParentOf(directory);
      } else {
        directory += (directory.empty() ? "" : "/") + std::string(part);
      }
    }
    return directory;
  }

  // Returns what the agent would read there; nullopt if there is no file. A link is followed as the
  // agent would.
  std::optional<std::string> Now(const std::string& path) const {
    Result<std::string> text = sys::ReadBeneath(checkout_, path, kInstructionBytesMax);
    if (!text.ok()) return std::nullopt;
    return std::move(text).value();
  }

  Error CannotPutBack(const std::string& path, const std::string& why) const {
    return Error{Code::kRefused, path + " has agent instructions at " + ref_ +
                                     " that cannot be given to the agent: " + why +
                                     " in the checkout"};
  }

  Result<std::optional<sandbox::WorkspaceFile>> Compare(const std::string& path) const {
    using Replaced = std::optional<sandbox::WorkspaceFile>;
    std::optional<std::string> base = TRY(AtBase(path));
    std::optional<mode_t> type = TypeOf(path);
    if (!base) {
      if (!type || type == S_IFDIR) return Replaced();
      return Replaced({path, "", true});
    }
    for (std::string above = ParentOf(path); !above.empty(); above = ParentOf(above)) {
      std::optional<mode_t> found = TypeOf(above);
      if (found && found != S_IFDIR) {
        return CannotPutBack(path, above + " is not a directory");
      }
    }
    if (type == S_IFDIR) return CannotPutBack(path, "it is a directory");
    if (type && Now(path) == base) return Replaced();
    return Replaced({path, *base, false});
  }

  const change::Repository& repository_;
  const std::string& checkout_;
  const std::string& ref_;
  std::set<std::string> candidates_;
};

}  // namespace

Result<std::vector<sandbox::WorkspaceFile>> FindBaseInstructions(
    const change::Repository* repository, const std::string& checkout, const TrustedRef& ref) {
  if (repository == nullptr || ref.ref == kWorktree || repository->unborn()) {
    return std::vector<sandbox::WorkspaceFile>();
  }
  return InstructionSearch(*repository, checkout, ref.ref).Run();
}

}  // namespace run
