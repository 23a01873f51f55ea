// SPDX-License-Identifier: Apache-2.0
#include "eval/run/results_directory.h"

#include <fcntl.h>

#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "change/repository.h"

namespace eval {
namespace {

// Returns whether git tracks cells there.
Result<bool> TracksCells(const std::string& results) {
  Result<change::Repository> repository = change::Repository::Open(results);
  if (!repository.ok() && repository.error().code == Code::kNotFound) return false;
  if (!repository.ok()) return std::move(repository).error();
  const change::Repository& git = repository.value();
  if (git.TracksBeneath("cells")) return true;
  if (git.unborn()) return false;
  // The index may be one that cannot be read.
  return !TRY(git.NamesAtRef("HEAD", git.prefix() + "cells")).empty();
}

// Returns whether there is nothing that could pass for a cell.
bool HasNoCells(const std::string& results) {
  Result<Fd> cells = sys::Open(results + "/cells", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!cells.ok()) return cells.error().code == Code::kNotFound;
  Result<std::vector<std::string>> names = sys::DirectoryNames(cells.value().get());
  return names.ok() && names.value().empty();
}

// Cells that a commit brings are its author's word, and not evidence. Nothing is asked of a
// repository that cannot be read, such as another user's, where there are none.
Status RefuseTrackedCells(const std::string& results, const std::string& hint) {
  if (HasNoCells(results)) return Ok();
  Result<bool> tracked = TracksCells(results);
  if (!tracked.ok()) {
    Error error = std::move(tracked).error();
    error.what = results + ": whether git tracks cells there is not known: " + error.what;
    error.hint = hint;
    return error;
  }
  if (!tracked.value()) return Ok();
  return Error{Code::kRefused, results + ": git tracks cells there, which are not evidence", hint};
}

}  // namespace

// A commit may bring a link, which would lead what is written or removed anywhere on the machine.
Status RefuseLinkedResults(const std::string& directory, const std::string& hint) {
  std::optional<std::string> link = FindLinkOnPath(directory + "/cells");
  if (!link) return Ok();
  return Error{Code::kRefused, *link + ": a directory of results cannot be a symbolic link", hint};
}

Result<std::string> FindResults(const std::string& directory, const std::string& hint) {
  TRY(RefuseLinkedResults(directory, hint));
  std::string path = TRY(sys::RealPath(directory).Context("reading " + directory));
  TRY(RefuseTrackedCells(path, hint));
  return path;
}

Result<std::string> OpenResults(const std::string& directory, const std::string& hint) {
  TRY(RefuseLinkedResults(directory, hint));
  TRY(sys::MakeDirectories(directory).Context("making " + directory));
  return FindResults(directory, hint);
}

}  // namespace eval
