// SPDX-License-Identifier: Apache-2.0
#include "eval/run/merge_cells.h"

#include <fcntl.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "base/sys.h"
#include "eval/child/copy_tree.h"
#include "eval/evidence/remote_record.h"
#include "eval/run/cell_store.h"
#include "eval/run/results_directory.h"

namespace eval {
namespace {

namespace fs = std::filesystem;

// A cell, and the directory of results that has it.
struct Source {
  const Cell* cell;
  const std::string* part;
};

// A directory that has a cell, and its record of it.
struct Holder {
  const std::string* path;
  CellRecord record;
};

constexpr size_t kRunBytesMax = size_t{64} << 20;

Status CopyCell(const Source& source, const CellStore& store, std::vector<std::string>* left_out) {
  const std::string name = source.cell->Name();
  const std::string begun = TRY(store.Begin());
  TRY(CopyTree(*source.part + "/cells/" + name, begun, left_out)
          .Context("copying the cell " + name + " of " + *source.part));
  return store.Finish(begun, *source.cell);
}

// A part is another job's word, and held to what DIR is.
Status CheckPart(const std::string& part) {
  TRY(FindResults(part, "agentic-ci eval merge SUITE DIR OTHER-PART..."));
  Fd top = TRY(sys::Open(part, O_PATH | O_DIRECTORY));
  TRY(sys::OpenBeneath(top.get(), "cells", O_PATH | O_DIRECTORY).Context("reading " + part));
  return Ok();
}

// Returns whether two directories have a cell of the same run: an earlier merge has copied it.
bool IsOfSameRun(const Cell& cell, const Holder& one, const Holder& other) {
  if (one.record.text != other.record.text) return false;
  for (const std::string& file : {std::string("report/run.json"), std::string(kRemoteFile)}) {
    const std::string name = "cells/" + cell.Name() + "/" + file;
    Result<std::string> first = sys::ReadBeneath(*one.path, name, kRunBytesMax);
    Result<std::string> second = sys::ReadBeneath(*other.path, name, kRunBytesMax);
    if (first.ok() && second.ok() && first.value() == second.value()) continue;
    if (first.ok() || second.ok() || first.error().code != Code::kNotFound ||
        second.error().code != Code::kNotFound) {
      return false;
    }
  }
  return true;
}

// Decides which cells are copied from where. The first place is that of the results.
class MergePlan {
 public:
  explicit MergePlan(const std::string& results) : results_(results) {}

  Status Add(const Cell& cell, const std::vector<const std::string*>& paths) {
    std::optional<Holder> from;
    for (const std::string* path : paths) {
      std::optional<CellRecord> record = ReadCellRecord(*path, cell);
      if (!record) continue;
      Holder holder{path, std::move(*record)};
      TRY(CheckSetup(cell, holder));
      if (!from) {
        from = std::move(holder);
      } else if (from->path != &results_ || !IsOfSameRun(cell, *from, holder)) {
        return Refuse("the cell " + cell.Name() + " is in " + *from->path + " and in " + *path,
                      *from->path);
      }
    }
    if (from && from->path != &results_) sources_.push_back({&cell, from->path});
    return Ok();
  }

  const std::vector<Source>& sources() const { return sources_; }

 private:
  Status CheckSetup(const Cell& cell, const Holder& holder) {
    if (!first_) {
      first_ = Source{&cell, holder.path};
      first_setup_ = holder.record.setup_sha256;
    }
    if (holder.record.setup_sha256 == first_setup_) return Ok();
    return Refuse("the cells " + first_->cell->Name() + " of " + *first_->part + " and " +
                      cell.Name() + " of " + *holder.path +
                      " were run with another suite, agent, model, policy or option, or by another "
                      "version",
                  *first_->part);
  }

  // Has no hint for two parts: a person must choose the one to be merged.
  Error Refuse(std::string what, const std::string& first) const {
    const bool is_there = &first == &results_;
    return Error{Code::kInvalid, std::move(what),
                 is_there ? "agentic-ci eval merge SUITE OTHER-DIR PART..." : ""};
  }

  const std::string& results_;
  std::vector<Source> sources_;
  std::optional<Source> first_;
  std::string first_setup_;
};

}  // namespace

Result<std::vector<std::string>> MergeCells(const std::vector<Cell>& cells,
                                            const std::vector<std::string>& parts,
                                            const std::string& results) {
  for (const std::string& part : parts) TRY(CheckPart(part));
  std::vector<const std::string*> places = {&results};
  for (const std::string& part : parts) places.push_back(&part);
  // The store is locked, so no other process stores more cells meanwhile.
  const CellStore store = TRY(CellStore::Open(results));
  MergePlan plan(results);
  for (const Cell& cell : cells) TRY(plan.Add(cell, places));
  std::vector<std::string> left_out;
  for (const Source& source : plan.sources()) TRY(CopyCell(source, store, &left_out));
  return left_out;
}

}  // namespace eval
