// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/credential_steps.h"

#include <time.h>

#include <algorithm>

#include "gateway/budget/model_api.h"
#include "gateway/credential/body_credentials.h"
#include "gateway/credential/limits.h"
#include "gateway/credential/middleware_redact.h"
#include "gateway/credential/sigv4.h"

namespace gateway {
namespace {

int64_t WallClock() { return int64_t{::time(nullptr)}; }

SigningPlan PlanSigning(const CredentialStepsInput& input) {
  const policy::Endpoint* endpoint = input.endpoint;
  if (endpoint != nullptr && endpoint->signing != policy::Signing::kNone) {
    return {endpoint->signing, endpoint->signing_service, endpoint->signing_region};
  }
  std::string_view service = input.credentials.SigningService(input.target);
  if (service.empty()) return {};
  return {policy::Signing::kSigV4, std::string(service), ""};
}

// A model is told what its agent saw, which may well be the environment with placeholders in it: an
// agent that printed it once could never call its model again.
bool IsForModel(const OutgoingRequest& request) {
  std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  return RecogniseModelCall(request.method, path).api != ModelApi::kNone;
}

}  // namespace

std::optional<OutgoingRefusal> AddCredentialSteps(const CredentialStepsInput& input,
                                                  const OutgoingRequest& request,
                                                  BodyTreatment& treatment) {
  SigningPlan signing = PlanSigning(input);
  std::unique_ptr<StreamFilter> redact;
  std::unique_ptr<StreamFilter> search;
  std::unique_ptr<WholeBodyStep> rewrite;
  size_t whole = treatment.whole_bytes_max;
  if (input.has_body) {
    Redaction redaction = PlanRedaction(input.middlewares, input.target.host, request.fields);
    if (redaction.refusal.has_value()) return std::move(redaction.refusal);
    redact = std::move(redaction.filter);
    bool wanted = input.endpoint != nullptr && input.endpoint->request_body_credential_rewrite &&
                  KindOfBody(request.fields) != BodyKind::kOther;
    if (wanted) {
      rewrite = NewBodyRewriter(input.credentials, input.target);
      whole = std::max(whole, kCredentialBodyBytesMax);
    } else if (!IsForModel(request) && input.credentials.SearchesBodies(input.target)) {
      search = NewMarkerFilter();
    }
    // The client's hash is of what it sent, not of what is left of it.
    bool changed = redact != nullptr && signing.mode == policy::Signing::kSigV4;
    if (changed) signing.mode = policy::Signing::kSigV4Body;
    whole = std::max(whole, SignedBodyBytes(signing, request.fields));
  }
  treatment.whole_bytes_max = whole;
  for (std::unique_ptr<StreamFilter>* filter : {&redact, &search}) {
    if (*filter == nullptr) continue;
    if (whole > 0) {
      treatment.steps.push_back(NewFilterStep(std::move(*filter)));
    } else {
      treatment.filters.push_back(std::move(*filter));
    }
  }
  if (rewrite != nullptr) treatment.steps.push_back(std::move(rewrite));
  if (signing.mode != policy::Signing::kNone) {
    treatment.steps.push_back(NewSigner(input.credentials, input.target, signing, WallClock));
  }
  return std::nullopt;
}

}  // namespace gateway
