// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "change/repository.h"
#include "policy/parse.h"
#include "report/record.h"
#include "run/image.h"
#include "run/request.h"

namespace run {

// Where a repository keeps its policy.
inline constexpr char kPolicyPath[] = ".agentic-ci/openshell-policy.yml";

struct LoadedPolicy {
  policy::ParsedPolicy parsed;
  std::string file;  // As messages show it.
  report::PolicyRecord record;
};

// The policy of this run: `--policy`, else the repository's file at `ref`, else what `image` (null:
// none) brings along, else the built-in default. `repository` may be null (a directory without
// git): then only a file of the working tree, which must be asked for, or the default is left.
// Fails with kNotFound for a named file or ref that does not exist and with kInvalid for one that
// cannot be read as a policy.
Result<LoadedPolicy> LoadPolicy(const Request& request, const change::Repository* repository,
                                const std::string& checkout, const std::string& ref,
                                const policy::ParseContext& context, const RunImage* image);

}  // namespace run
