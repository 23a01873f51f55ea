// SPDX-License-Identifier: Apache-2.0
// A GitLab job's ID token (`id_tokens:` of its definition): what GitLab says of the job, signed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/event.h"
#include "forge/facts.h"
#include "net/proxy.h"

namespace forge {

// The variable that has the token, and whom it has to be for (`aud`).
inline constexpr char kGitLabTokenVariable[] = "AGENTIC_CI_ID_TOKEN";
inline constexpr char kGitLabTokenAudience[] = "agentic-ci";

// The bound on an instance's key set.
inline constexpr size_t kGitLabKeysBytesMax = size_t{256} << 10;

// The claims by GitLab's names, without those that are not about what started the job. A claim is
// empty or 0 if the token does not have it, as in an older version.
struct GitLabJob {
  // `project_id`. In a pipeline of a fork's merge request, the fork, whichever project it runs in;
  // before GitLab 18.2, the project that it runs in.
  int64_t source_project = 0;
  int64_t project = 0;  // `job_project_id`: the project that it runs in. Since GitLab 18.3.
  std::string pipeline_source;
  std::string pipeline_id;
  std::string job_id;
  std::string ref;
  std::string sha;
  bool ref_protected = false;
};

// The terms on which a token is accepted.
struct GitLabTokenTerms {
  std::string issuer;  // The instance: `iss`.
  std::string keys;    // Its keys, as it publishes them: a JSON Web Key Set (RFC 7517).
  int64_t now_s = 0;   // Since 1970.
};

// Returns the claims of a token (RFC 7519) that was signed by the issuer with RS256, is for
// agentic-ci, and is valid now, give or take a minute. Fails with kSetup if it does not verify,
// with kInvalid if `keys` are not a key set.
Result<GitLabJob> VerifyGitLabToken(std::string_view token, const GitLabTokenTerms& terms);

// Takes into `event` what the token says. Fails with kSetup if the job's variables, which `event`
// was read from, say other than the token. A branch or tag that the token does not call protected
// has no trusted_sha, as CI_DEFAULT_BRANCH is not signed.
Status TakeGitLabJob(const GitLabJob& job, const EnvironmentReader& environment, Event* event);

// Verifies the job's token, if there is one, and takes what it says into `event`: Facts::verify.
Result<bool> VerifyGitLabEvent(const EnvironmentReader& environment, const SignatureTerms& terms,
                               Event* event, Deadline deadline);

struct GitLabKeysAccess {
  std::string ca_file;  // If empty, the system's.
  net::Proxy proxy;
};

// Returns the keys that the instance publishes. Fails with kTemporary if it did not answer, with
// kSetup if what is at `issuer` has none, or cannot be asked in a way that proves whose they are.
Result<std::string> FetchGitLabKeys(const std::string& issuer, const GitLabKeysAccess& access,
                                    Deadline deadline);

}  // namespace forge
