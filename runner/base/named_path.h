// SPDX-License-Identifier: Apache-2.0
// A path that a person or a workflow names may lead into a checkout. A pull request
// decides what lies there: a symbolic link would lead to any file of the machine, also to
// /proc/self/environ. No link is followed beneath the top of a checkout; those above it are the
// machine's own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

// A path as it is written, divided where a checkout begins.
struct CheckoutPath {
  std::string top;    // Absolute: the outermost directory of the path that has a `.git`.
  std::string below;  // The rest, without `..`; `.` for the top.
};
// Returns nullopt if the path leads into no checkout.
std::optional<CheckoutPath> FindCheckoutPath(const std::string& path);

// Returns the shortest beginning of `path`, as it is written, that is a symbolic link; nullopt if
// no part of it is one.
std::optional<std::string> FindLinkOnPath(const std::string& path);

// Returns the repository's file `path` (from its top) as it lies on disk: here, or in a directory
// above up to the repository's top, as a relative path; empty if the repository does not have it.
std::string FindRepositoryFile(const std::string& path);

// Reads the file. Fails with kInvalid for one that a link in a checkout leads to, for one of /proc
// and for more than `bytes_max`.
Result<std::string> ReadNamedFile(const std::string& path, size_t bytes_max);

// Does the same for a file that may change while it is used: fails with kInvalid for all but a
// regular one, and never waits for the writer of a pipe.
Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_max);

// Returns the canonical path of the directory. Fails with kInvalid for a link in a checkout.
Result<std::string> ResolveNamedDirectory(const std::string& path);

// Opens the directory; it and those above it are made where they are missing, with `mode`. Fails
// with kInvalid for a link in a checkout.
Result<Fd> MakeNamedDirectory(const std::string& path, mode_t mode);
