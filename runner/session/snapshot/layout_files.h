// SPDX-License-Identifier: Apache-2.0
// The files of an OCI layout that snapshots are written to. No link in it is followed.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace session {

// Writes a file that appears whole under its name in `directory`, or not at all.
Status WriteWhole(int directory, const std::string& name, std::string_view text);

// Opens the directory of the blobs of an open layout; it is made (0700) where it is missing.
Result<Fd> OpenBlobs(int layout);

// Until the descriptor is closed, no other process adds to the layout or removes from it.
Status LockLayout(int layout);

// Returns the text of the index of images of an open layout, at most 4 MiB; empty if there is none.
Result<std::string> ReadIndex(int layout);

// Writes the index, and the file that makes the directory a layout if it is missing.
Status WriteIndex(int layout, std::string_view index);

}  // namespace session
