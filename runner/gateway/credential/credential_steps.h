// SPDX-License-Identifier: Apache-2.0
// The steps of credentials and redaction for the body of one request, in order: keys are redacted,
// placeholders are replaced or refused, and the result is signed last.
#pragma once

#include <optional>

#include "gateway/credential/credentials.h"
#include "gateway/http/body_filter.h"
#include "policy/model/policy.h"

namespace gateway {

// One request that the policy allows.
struct CredentialStepsInput {
  const Credentials& credentials;
  const std::vector<policy::Middleware>& middlewares;
  // The endpoint whose options apply; null if there is none.
  const policy::Endpoint* endpoint = nullptr;
  CredentialTarget target;  // Its host must outlive the treatment.
  bool has_body = false;
};

// Adds to `treatment`, to which those who judge whole bodies have added theirs before. A treatment
// with steps and no whole_bytes_max has them taken on the head alone. A refusal is the request's.
std::optional<OutgoingRefusal> AddCredentialSteps(const CredentialStepsInput& input,
                                                  const OutgoingRequest& request,
                                                  BodyTreatment& treatment);

}  // namespace gateway
