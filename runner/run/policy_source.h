// SPDX-License-Identifier: Apache-2.0
// Finds and loads the policy of a run: the named file, the repository's at the trusted ref, the
// image's, or the default.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "change/repository.h"
#include "policy/load/parse.h"
#include "report/record.h"
#include "run/image.h"
#include "run/request.h"

namespace run {

// The path of the policy in a repository.
inline constexpr char kPolicyPath[] = ".agentic-ci/openshell-policy.yml";

// A policy's text and where it was found; without a text the repository has none.
struct PolicySource {
  std::optional<std::string> text;
  std::string file;  // The file's name, as messages show it.
  report::PolicyRecord record;
};

struct LoadedPolicy {
  policy::ParsedPolicy parsed;
  std::string file;  // The file's name, as messages show it.
  report::PolicyRecord record;
};

// Finds the file of `--policy` (or what replaced it), else the task's or the repository's file at
// `ref`. Fails as ReadTrustedFile() does, with kNotFound for a named file that does not exist, and
// with kSetup if there is no repository but a ref.
Result<PolicySource> FindPolicy(const Request& request, const change::Repository* repository,
                                const std::string& checkout, const TrustedRef& ref);

// Returns the policy of this run: `source`, else what `image` (null: none) brings along, else the
// built-in default; its programs as they are written (AddResolvedBinaries). Fails with kInvalid for
// what cannot be read as a policy.
Result<LoadedPolicy> LoadPolicy(PolicySource source, const policy::ParseContext& context,
                                const RunImage* image);

// Returns the policy `text`, which takes the place of the file of `--policy` while a sandbox lasts.
// Errors call it `shown`. Fails as LoadPolicy() does.
Result<LoadedPolicy> LoadPolicyText(std::string text, const std::string& shown,
                                    const policy::ParseContext& context, const RunImage* image);
// Returns the error of kUsage where none can take its place: the policy is not of such a file, or
// was narrowed.
Error PolicyDoesNotChange();

// Adds what the programs that `policy` names lead to, links followed in the image, or on the host
// where there is none (null): the kernel names a process by that.
void AddResolvedBinaries(const RunImage* image, policy::Policy* policy);

// Adds network policies that stand in no file, in the order that files' have.
void AddNetwork(const std::vector<policy::NetworkPolicy>& added, policy::Policy* policy);

// Says where the policy has names looked up that it does not name.
void WarnOfAnyName(const LoadedPolicy& policy);

}  // namespace run
