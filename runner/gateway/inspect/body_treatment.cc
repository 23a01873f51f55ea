// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/body_treatment.h"

#include <algorithm>

#include "gateway/budget/limits.h"
#include "gateway/credential/body_credentials.h"
#include "gateway/credential/credential_steps.h"
#include "gateway/inspect/named_method.h"

namespace gateway {
namespace {

OutgoingRefusal RefuseTooLong(size_t bytes_max) {
  std::string why =
      "request body longer than " + std::to_string(bytes_max) + " bytes, the limit for inspection";
  return {NewRefusal(413, "request_body_too_large", why), record::Engine::kL7, why};
}

// Adds the filter in front of what changes the body.
void AddFilter(std::unique_ptr<StreamFilter> filter, BodyTreatment& treatment) {
  if (treatment.whole_bytes_max > 0) {
    treatment.steps.insert(treatment.steps.begin(), NewFilterStep(std::move(filter)));
  } else {
    treatment.filters.insert(treatment.filters.begin(), std::move(filter));
  }
}

}  // namespace

BodyTreatment TreatBody(const RequestGuard* guard, const RequestContext& context,
                        const RequestVerdict& verdict, bool has_body, bool reads_hosted) {
  const OutgoingRequest& request = verdict.request;
  BodyTreatment treatment;
  treatment.whole_bytes_max = verdict.judged_body_bytes_max;
  if (reads_hosted) {
    treatment.whole_bytes_max = std::max(treatment.whole_bytes_max, kModelRequestBytesMax);
  }
  if (guard != nullptr) {
    treatment.whole_bytes_max =
        std::max(treatment.whole_bytes_max, guard->BodyBytesWanted(request));
  }
  treatment.refusal = AddCredentialSteps(
      {context.credentials,
       context.policy().middlewares,
       verdict.endpoint,
       {context.authority.host, context.authority.port, verdict.path, context.confidential},
       has_body},
      request, treatment);
  if (has_body && codec::EqualIgnoringCase(request.method, "POST")) {
    std::optional<OutgoingRefusal> refusal = RefuseOtherMethods(context, verdict);
    if (refusal.has_value()) {
      for (auto& filter : NewMethodFilters(request.fields, *refusal)) {
        AddFilter(std::move(filter), treatment);
      }
    }
  }
  if (treatment.whole_bytes_max > 0) {
    treatment.too_long = RefuseTooLong(treatment.whole_bytes_max);
  }
  return treatment;
}

}  // namespace gateway
