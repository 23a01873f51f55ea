// SPDX-License-Identifier: Apache-2.0
#include "forge/github/forge.h"

#include "forge/github/app_token.h"
#include "forge/github/attestations.h"
#include "forge/github/checks.h"
#include "forge/github/code_scanning.h"

namespace forge {

namespace {

constexpr const char* kGitHubFlags[] = {"GITHUB_ACTIONS"};

}  // namespace

constexpr Facts kGitHubFacts = [] {
  Facts facts = ActionsFacts<ForgeKind::kGitHub>();
  facts.name = "github";
  facts.can.names = "GitHub";
  facts.can.check_runs = true;
  facts.can.code_scanning = true;
  facts.can.statements = true;
  facts.can.comments_on_files = true;
  facts.can.line_ranges = true;
  facts.can.suggestions = true;
  facts.flags = kGitHubFlags;
  facts.artifacts_anchor = "#artifacts";
  facts.open = OpenAs<GitHub>;
  facts.app_token = TakeAppToken;
  facts.revoke = RevokeAppToken;
  return facts;
}();

Status GitHub::PostCheckRun(const CheckRun& run, Deadline deadline) {
  return forge::PostCheckRun(client_, place().repository, run, deadline);
}

Status GitHub::UploadSarif(const SarifUpload& upload, Deadline deadline) {
  return forge::UploadSarif(client_, place().repository, upload, deadline);
}

Status GitHub::StoreStatement(const StatementUpload& upload, Deadline deadline) {
  return forge::StoreStatement(client_, place().repository, upload, deadline);
}

Result<std::vector<std::string>> GitHub::FindStatements(const std::string& predicate_type,
                                                        const std::string& sha256,
                                                        Deadline deadline) {
  return forge::FindStatements(client_, place().repository, predicate_type, sha256, deadline);
}

}  // namespace forge
