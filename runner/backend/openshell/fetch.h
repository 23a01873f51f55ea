// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/child.h"
#include "base/deadline.h"
#include "base/result.h"

namespace openshell {

struct FetchLimits {
  int64_t bytes_max = 0;  // The content of all files.
  Deadline deadline = Deadline::Never();
  int cancel = -1;  // Borrowed; readable when it is not to be waited for any more.
};

struct Fetched {
  bool whole = true;  // False if the packer could not read everything.
  std::string said;   // The beginning of its standard error, which comes from the sandbox.
};

// Unpacks the tar archive that `packer` prints into the empty directory `to` (borrowed), and waits
// for its end. What comes may be hostile: nothing outside `to` is written, and what it says on
// standard error never holds it up nor decides which Error this is. Fails with kTemporary if it
// does not end in time, with kUnsupported if there is more than the limit, holes in files included,
// with kInvalid if it is not a plain archive, with kIo if `packer` gives no archive.
Result<Fetched> FetchArchive(Child packer, int to, const FetchLimits& limits);

}  // namespace openshell
