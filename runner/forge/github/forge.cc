// SPDX-License-Identifier: Apache-2.0
#include "forge/github/forge.h"

#include "forge/github/checks.h"
#include "forge/github/code_scanning.h"

namespace forge {

const Capabilities& GitHub::Can() {
  static constexpr Capabilities kGitHub = [] {
    Capabilities can;
    can.names = "GitHub";
    can.check_runs = true;
    can.code_scanning = true;
    can.comments_on_files = true;
    can.line_ranges = true;
    can.suggestions = true;
    return can;
  }();
  return kGitHub;
}

Status GitHub::PostCheckRun(const CheckRun& run, Deadline deadline) {
  return forge::PostCheckRun(client_, place().repository, run, deadline);
}

Status GitHub::UploadSarif(const SarifUpload& upload, Deadline deadline) {
  return forge::UploadSarif(client_, place().repository, upload, deadline);
}

}  // namespace forge
