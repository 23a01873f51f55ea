// SPDX-License-Identifier: Apache-2.0
#include "forge/github/attestations.h"

#include <utility>

#include "codec/data/json.h"

namespace forge {
namespace {

using codec::Json;

constexpr int kStatementsMax = 100;  // GitHub's bound on a page.

// The envelope alone tells statements apart: the store writes the rest of a bundle as it likes.
std::string EnvelopeOf(const Json& bundle) {
  const Json* envelope = bundle.Find("dsseEnvelope");
  const Json* list = envelope == nullptr ? nullptr : envelope->Find("signatures");
  if (list == nullptr || list->array() == nullptr || list->array()->empty()) return {};
  return envelope->StringAt("payload") + " " + list->array()->front().StringAt("sig");
}

Result<std::vector<Json>> Find(Client& client, const std::string& repository,
                               const std::string& predicate_type, const std::string& sha256,
                               Deadline deadline) {
  const ApiPath path = (ApiPath::Repository(repository) / "attestations" / ("sha256:" + sha256))
                           .Query("predicate_type", predicate_type)
                           .Query("per_page", kStatementsMax);
  Result<Json> response = client.Get(path, "permissions: { attestations: read }", deadline);
  if (!response.ok() && response.error().code == Code::kNotFound) return std::vector<Json>();
  const Json json = TRY(std::move(response));
  std::vector<Json> bundles;
  const Json* list = json.Find("attestations");
  if (list == nullptr || list->array() == nullptr) return bundles;
  for (const Json& one : *list->array()) {
    const Json* bundle = one.Find("bundle");
    if (bundle == nullptr || bundle->object() == nullptr) {
      return Error{Code::kUnsupported,
                   "the store says where an attestation is, and not what it is"};
    }
    bundles.push_back(*bundle);
  }
  return bundles;
}

}  // namespace

Status StoreStatement(Client& client, const std::string& repository, const StatementUpload& upload,
                      Deadline deadline) {
  const Json bundle = TRY(codec::ParseJson(upload.bundle));
  for (const Json& there :
       TRY(Find(client, repository, upload.predicate_type, upload.sha256, deadline))) {
    if (EnvelopeOf(there) == EnvelopeOf(bundle)) return Ok();
  }
  WriteRequest request;
  request.path = ApiPath::Repository(repository) / "attestations";
  request.body.Set("bundle", bundle);
  request.permission = "permissions: { attestations: write }";
  TRY(client.Write(request, deadline));
  return Ok();
}

Result<std::vector<std::string>> FindStatements(Client& client, const std::string& repository,
                                                const std::string& predicate_type,
                                                const std::string& sha256, Deadline deadline) {
  std::vector<std::string> bundles;
  for (const Json& bundle : TRY(Find(client, repository, predicate_type, sha256, deadline))) {
    bundles.push_back(codec::RenderJsonLine(bundle));
  }
  return bundles;
}

}  // namespace forge
