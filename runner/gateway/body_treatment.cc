// SPDX-License-Identifier: Apache-2.0
#include "gateway/body_treatment.h"

#include <algorithm>

namespace gateway {
namespace {

OutgoingRefusal RefuseTooLong(size_t bytes_max) {
  std::string why = "request body longer than " + std::to_string(bytes_max) +
                    " bytes, which is as much as is looked into";
  return {NewRefusal(413, "request_body_too_large", why), "l7", why};
}

}  // namespace

BodyTreatment TreatBody(const Services& services, const RequestContext& /*context*/,
                        const RequestVerdict& /*verdict*/, const OutgoingRequest& request) {
  BodyTreatment treatment;
  if (services.guard != nullptr) {
    treatment.whole_bytes_max = services.guard->BodyBytesWanted(request);
  }
  treatment.too_long = RefuseTooLong(treatment.whole_bytes_max);
  return treatment;
}

}  // namespace gateway
