// SPDX-License-Identifier: Apache-2.0
#include "change/apply.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/sys.h"
#include "change/convert.h"
#include "change/tree_edit.h"
#include "change/tree_file.h"
#include "change/tree_writer.h"

namespace change {
namespace {

// The bytes of one old file; the capture's own limits are lower.
constexpr int64_t kFileBytesMax = int64_t{1} << 30;

Result<OldFile> ReadOldFile(int root, const std::string& path, PlannedOn* planned_on) {
  TreeFile file = TRY(TreeFile::Open(root, path, Unreadable::kFail));
  if (file.mode() == 0) return OldFile{};
  (*planned_on)[path] = file.facts();
  return OldFile{file.mode(), TRY(file.Read(kFileBytesMax))};
}

}  // namespace

Status ApplyPatch(const std::string& checkout, const Repository* repository,
                  const ChangeSet& changes) {
  if (!changes.complete) {
    return Error{Code::kRefused, "the changes are incomplete, so they are not applied"};
  }
  if (changes.patch.empty()) return Ok();
  Fd root = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY).Context("opening the checkout"));
  std::optional<CheckoutBlobs> blobs;
  if (repository != nullptr) blobs.emplace(*repository);
  std::map<std::string, std::string> pointers;
  PlannedOn planned_on;
  auto old_file = [&](const std::string& path) -> Result<OldFile> {
    Result<OldFile> there = ReadOldFile(root.get(), path, &planned_on);
    if (repository != nullptr && !there.ok() && there.error().code == Code::kNotFound) {
      std::optional<Repository::GitFile> sparse = TRY(repository->SparseFileAt(path));
      if (sparse) return OldFile{sparse->mode, std::move(sparse->blob)};
    }
    OldFile file = TRY(std::move(there));
    if (!blobs || file.mode == 0 || file.mode == kLinkMode) return file;
    std::string blob = TRY(blobs->Of(path, file.bytes).Context(path));
    std::swap(blob, file.bytes);
    if (IsLfsPointer(file.bytes)) pointers[file.bytes] = std::move(blob);
    return file;
  };
  TreeEdit edit = TRY(PlanEdit(changes.patch, old_file));
  if (blobs) TRY(ConvertToFiles(*repository, *blobs, pointers, edit));
  return WriteTree(root.get(), edit, planned_on);
}

void NoteWritten(const std::string& checkout, int tree, const ChangeSet& changes,
                 Meanwhile* meanwhile) {
  Result<Fd> root = sys::Open(checkout, O_RDONLY | O_DIRECTORY);
  if (!root.ok()) return;
  std::set<std::string> paths;
  for (const FileChange& file : changes.files) {
    for (const std::string& path : {file.path, file.old_path}) {
      for (size_t end = path.size(); end != std::string::npos && end > 0;) {
        if (!paths.insert(path.substr(0, end)).second) break;
        end = path.rfind('/', end - 1);
      }
    }
  }
  for (const std::string& path : paths) {
    meanwhile->written[path] = {TimeBeneath(root.value().get(), path).value_or(timespec{}),
                                TimeBeneath(tree, path), ContentBeneath(root.value().get(), path)};
  }
}

}  // namespace change
