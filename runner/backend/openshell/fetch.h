// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/child.h"
#include "base/deadline.h"
#include "base/result.h"

namespace openshell {

struct FetchLimits {
  int64_t bytes_max = 0;  // The archive.
  Deadline deadline = Deadline::Never();
  int cancel = -1;  // Borrowed; readable when it is not to be waited for any more.
};

// Unpacks the tar archive that `packer` prints into the empty directory `to` (borrowed), and waits
// for its end. What comes may be hostile: nothing outside `to` is written, and what it says on
// standard error never holds it up. Fails with kTemporary if it does not end in time, with
// kUnsupported if there is more than the limit, with kInvalid if it is not a plain archive.
Status FetchArchive(Child packer, int to, const FetchLimits& limits);

}  // namespace openshell
