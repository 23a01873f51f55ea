// SPDX-License-Identifier: Apache-2.0
// `agentic-ci policy suggest --policy FILE`: denials as a patch of the policy that denied them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "advise/suggest.h"
#include "base/result.h"
#include "policy/load/parse.h"

namespace advise {

struct SuggestedPatch {
  std::string patch;  // A unified diff for `git apply`; empty if there is nothing to suggest.
  std::string text;   // The file with the patch applied.
  std::vector<std::string> notes;  // Denials left out, and why: one line each.
};

// Returns the narrowest additions to the policy file `text` that let these requests pass. Each was
// tried: a denial that the addition would not help (a deny rule, an operation that GraphQL rules
// judge) is a note. Denials that the policy allows by now are left out silently. `context` as for
// ParsePolicy. Fails with kInvalid when the file is not a policy, or is written so that no line can
// be added.
Result<SuggestedPatch> SuggestPatch(const std::string& text, const policy::ParseContext& context,
                                    const std::vector<Denial>& denials);

}  // namespace advise
