// SPDX-License-Identifier: Apache-2.0
#include "eval/run/merge_cells.h"

#include <fcntl.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "base/sys.h"
#include "eval/run/cell_store.h"

namespace eval {
namespace {

namespace fs = std::filesystem;

// A cell, and the directory of results that has it.
struct Source {
  const Cell* cell;
  const std::string* part;
};

// Copies the regular files of a tree into an empty directory. The target of a link, or what another
// program would write into a pipe, is not evidence of the cell.
std::error_code CopyTree(const fs::path& from, const fs::path& to,
                         std::vector<std::string>* left_out) {
  std::error_code failed;
  fs::recursive_directory_iterator entries(from, failed);
  for (; !failed && entries != fs::recursive_directory_iterator(); entries.increment(failed)) {
    const fs::path target = to / entries->path().lexically_relative(from);
    const fs::file_type type = entries->symlink_status(failed).type();
    if (failed) break;
    if (type == fs::file_type::directory) {
      fs::create_directory(target, failed);
    } else if (type == fs::file_type::regular) {
      fs::copy_file(entries->path(), target, failed);
    } else {
      left_out->push_back(entries->path().string());
    }
    if (failed) break;
  }
  return failed;
}

Status CopyCell(const Source& source, const CellStore& store, std::vector<std::string>* left_out) {
  const std::string name = source.cell->Name();
  const std::string begun = TRY(store.Begin());
  std::error_code failed = CopyTree(*source.part + "/cells/" + name, begun, left_out);
  if (!failed) return store.Finish(begun, *source.cell);
  return Error{Code::kIo,
               "copying the cell " + name + " of " + *source.part + ": " + failed.message()};
}

Status CheckPart(const std::string& part) {
  Fd top = TRY(sys::Open(part, O_PATH | O_DIRECTORY));
  TRY(sys::OpenBeneath(top.get(), "cells", O_PATH | O_DIRECTORY));
  return Ok();
}

}  // namespace

Result<std::vector<std::string>> MergeCells(const std::vector<Cell>& cells,
                                            const std::vector<std::string>& parts,
                                            const std::string& results) {
  for (const std::string& part : parts) TRY(CheckPart(part).Context("reading " + part));
  std::vector<const std::string*> places = {&results};
  for (const std::string& part : parts) places.push_back(&part);
  std::vector<Source> sources;
  std::optional<Source> first;
  std::string first_setup;
  for (const Cell& cell : cells) {
    const std::string* from = nullptr;
    for (const std::string* place : places) {
      std::optional<CellRecord> record = ReadCellRecord(*place, cell);
      if (!record) continue;
      if (from != nullptr) {
        return Invalid("the cell " + cell.Name() + " is in " + *from + " and in " + *place);
      }
      from = place;
      if (!first) {
        first = Source{&cell, place};
        first_setup = record->setup_sha256;
      }
      if (record->setup_sha256 == first_setup) continue;
      return Invalid("the cells " + first->cell->Name() + " of " + *first->part + " and " +
                     cell.Name() + " of " + *place +
                     " were run with another suite, agent, model, policy or option, or by another "
                     "version");
    }
    if (from != nullptr && from != &results) sources.push_back({&cell, from});
  }
  const CellStore store = TRY(CellStore::Open(results));
  std::vector<std::string> left_out;
  for (const Source& source : sources) TRY(CopyCell(source, store, &left_out));
  return left_out;
}

}  // namespace eval
