// SPDX-License-Identifier: Apache-2.0
#include "eval/run/merge_cells.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/sys.h"
#include "eval/run/run_cells.h"

namespace eval {
namespace {

Status CopyCell(const std::string& name, const std::string& part, const std::string& results) {
  const std::string hidden = results + "/cells/." + name + "." + std::to_string(::getpid());
  std::error_code failed;
  // The target of a link is not evidence of the cell.
  std::filesystem::copy(
      part + "/cells/" + name, hidden,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_symlinks,
      failed);
  if (!failed) std::filesystem::rename(hidden, results + "/cells/" + name, failed);
  if (!failed) return Ok();
  std::error_code ignored;
  std::filesystem::remove_all(hidden, ignored);
  return Error{Code::kIo, "copying the cell " + name + " of " + part + ": " + failed.message()};
}

}  // namespace

Status MergeCells(const std::vector<Cell>& cells, const std::vector<std::string>& parts,
                  const std::string& results) {
  for (const std::string& part : parts) {
    TRY(sys::RealPath(part + "/cells").Context("reading " + part));
  }
  TRY(sys::MakeDirectories(results + "/cells").Context("making the results' directory"));
  for (const Cell& cell : cells) {
    const std::string* from = nullptr;
    for (const std::string& part : parts) {
      if (!IsDone(part, cell)) continue;
      if (from != nullptr) {
        return Invalid("the cell " + cell.Name() + " is in " + *from + " and in " + part);
      }
      from = &part;
    }
    if (from != nullptr && !IsDone(results, cell)) TRY(CopyCell(cell.Name(), *from, results));
  }
  return Ok();
}

}  // namespace eval
