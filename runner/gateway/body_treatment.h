// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/body_filter.h"
#include "gateway/request_judge.h"
#include "gateway/services.h"

namespace gateway {

// What is to happen to the body of an allowed request, put together from all who look into bodies.
// `request` is what would be sent. `context` and `verdict` have to live as long as the treatment.
BodyTreatment TreatBody(const Services& services, const RequestContext& context,
                        const RequestVerdict& verdict, bool has_body,
                        const OutgoingRequest& request);

}  // namespace gateway
