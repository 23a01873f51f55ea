// SPDX-License-Identifier: Apache-2.0
// Credentials that other steps leave in the checkout while a sandbox lasts: the layer below shows
// at once what appears there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/shown/left_files.h"
#include "run/subject.h"
#include "sandbox/sandbox.h"

namespace session {

class LateFiles {
 public:
  // Takes them away from the sandbox, as when it began, and returns them; what it has in its own
  // layer stays. `report` is the directory of the report, absolute. Nothing inside may run
  // meanwhile.
  Result<std::vector<sandbox::WorkspaceFile>> Hide(const sandbox::Sandbox& sandbox,
                                                   const run::Checkout& checked_out,
                                                   const std::string& report);

  // Returns whether Hide() may find more: a directory of the checkout, or a file by such a name,
  // has changed since. That costs about a microsecond for each.
  bool MayHave(const std::string& checkout) const;

  // Forgets what was hidden: another layer is in place.
  void Forget() { seen_.clear(); }

 private:
  std::vector<run::Seen> seen_;
};

}  // namespace session
