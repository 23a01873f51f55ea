// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/budget/response_observer.h"
#include "gateway/http/body_filter.h"
#include "gateway/inspect/request_judge.h"

namespace gateway {

// Returns the treatment of an allowed request's body, put together from all who look into bodies.
// `guard` is null if there is no budget. With `reads_hosted`, it is judged for hosted tools.
// `context` and `verdict` have to live as long as the treatment.
BodyTreatment TreatBody(const RequestGuard* guard, const RequestContext& context,
                        const RequestVerdict& verdict, bool has_body, bool reads_hosted);

}  // namespace gateway
