// SPDX-License-Identifier: Apache-2.0
#include "change/apply.h"

#include <fcntl.h>

#include <utility>

#include "base/sys.h"
#include "change/tree_edit.h"
#include "change/tree_file.h"
#include "change/tree_writer.h"

namespace change {
namespace {

// Of one old file; the capture's own limits are lower.
constexpr int64_t kFileBytesMax = int64_t{1} << 30;

Result<OldFile> ReadOldFile(int root, const std::string& path) {
  TreeFile file = TRY(TreeFile::Open(root, path, Unreadable::kFail));
  if (file.mode() == 0) return OldFile{};
  return OldFile{file.mode(), TRY(file.Read(kFileBytesMax))};
}

}  // namespace

Status ApplyPatch(const std::string& checkout, const ChangeSet& changes) {
  if (!changes.complete) {
    return Error{Code::kRefused, "the changes are incomplete, so they are not applied"};
  }
  if (changes.patch.empty()) return Ok();
  Fd root = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY).Context("opening the checkout"));
  TreeEdit edit = TRY(PlanEdit(
      changes.patch, [&root](const std::string& path) { return ReadOldFile(root.get(), path); }));
  return WriteTree(root.get(), edit);
}

}  // namespace change
