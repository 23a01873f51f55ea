// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/signed_event.h"

#include <ctime>

#include "base/named_path.h"
#include "forge/event_fields.h"
#include "forge/gitlab/job_token.h"

namespace run {
Result<bool> VerifyEvent(const forge::EnvironmentReader& environment, const SignatureTerms& terms,
                         forge::Event* event, Deadline deadline) {
  if (event->forge != forge::ForgeKind::kGitLab) return false;
  const std::string token = environment(forge::kGitLabTokenVariable).value_or("");
  if (token.empty()) return false;
  forge::GitLabTokenTerms wanted;
  wanted.issuer = forge::WithoutSlash(terms.issuer.empty() ? event->server_url : terms.issuer);
  wanted.now_s = std::time(nullptr);
  wanted.keys =
      TRY(terms.keys_file.empty()
              ? forge::FetchGitLabKeys(wanted.issuer, {terms.ca_file, terms.proxy}, deadline)
              : ReadNamedFile(terms.keys_file, forge::kGitLabKeysBytesMax));
  const forge::GitLabJob job = TRY(forge::VerifyGitLabToken(token, wanted));
  TRY(forge::TakeGitLabJob(job, environment, event));
  return true;
}

Trust RequireSignature(const forge::Event& event, bool is_signed, const Trust& trust) {
  const bool forgeable =
      event.forge == forge::ForgeKind::kGitLab && event.kind == forge::EventKind::kPullRequest;
  if (!trust.trusted || is_signed || !forgeable) return trust;
  const std::string name = forge::kGitLabTokenVariable;
  return {false,
          "the merge request's variables can be forged, as the job has no ID token (" + name + ")",
          "id_tokens: { " + name + ": { aud: " + forge::kGitLabTokenAudience + " } }"};
}

}  // namespace run
