// SPDX-License-Identifier: Apache-2.0
#include "eval/run/results_directory.h"

#include <optional>

#include "base/named_path.h"
#include "base/sys.h"
#include "change/repository.h"

namespace eval {
namespace {

// Cells that a commit brings are its author's word, and not evidence.
Status RefuseTrackedCells(const std::string& results, const std::string& hint) {
  Result<change::Repository> repository = change::Repository::Open(results);
  if (!repository.ok() && repository.error().code == Code::kNotFound) return Ok();
  if (!repository.ok()) return std::move(repository).error();
  const change::Repository& git = repository.value();
  bool tracked = git.TracksBeneath("cells");
  // The index may be one that cannot be read.
  if (!tracked && !git.unborn()) {
    tracked = !TRY(git.NamesAtRef("HEAD", git.prefix() + "cells")).empty();
  }
  if (!tracked) return Ok();
  return Error{Code::kRefused, results + ": git tracks cells there, which are not evidence", hint};
}

}  // namespace

// A commit may bring a link, which would lead what is written or removed anywhere on the machine.
Status RefuseLinkedResults(const std::string& directory, const std::string& hint) {
  std::optional<std::string> link = FindLinkOnPath(directory + "/cells");
  if (!link) return Ok();
  return Error{Code::kRefused, *link + ": a directory of results cannot be a symbolic link", hint};
}

Result<std::string> OpenResults(const std::string& directory, const std::string& hint) {
  TRY(RefuseLinkedResults(directory, hint));
  TRY(sys::MakeDirectories(directory).Context("making " + directory));
  std::string path = TRY(sys::RealPath(directory));
  TRY(RefuseTrackedCells(path, hint));
  return path;
}

}  // namespace eval
