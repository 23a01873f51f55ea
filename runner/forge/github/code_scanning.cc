// SPDX-License-Identifier: Apache-2.0
#include "forge/github/code_scanning.h"

#include "codec/data/gzip.h"
#include "codec/text/base64.h"

namespace forge {
namespace {

constexpr size_t kPackedBytesMax = size_t{10} << 20;  // GitHub's bound, of the packed log.
constexpr char kSecurityPermission[] = "permissions: { security-events: write }";

}  // namespace

Status UploadSarif(Client& client, const std::string& repository, const SarifUpload& upload,
                   Deadline deadline) {
  std::string packed = codec::Gzip(upload.sarif);
  if (packed.size() > kPackedBytesMax) {
    return Error{Code::kInvalid, "the packed SARIF log is larger than 10 MiB"};
  }
  WriteRequest request{"POST",
                       ApiPath::Repository(repository) / "code-scanning" / "sarifs",
                       {},
                       true,
                       kSecurityPermission};
  request.body.Set("commit_sha", upload.commit_sha)
      .Set("ref", upload.ref)
      .Set("sarif", codec::EncodeBase64(packed))
      .Set("tool_name", "agentic-ci");
  TRY(client.Write(request, deadline));
  return Ok();
}

}  // namespace forge
