// SPDX-License-Identifier: Apache-2.0
// The keys of an endpoint that belong to one protocol, and those about credentials.
#pragma once

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Reads them into `endpoint`, whose protocol, access and TLS mode are known. Fails with kInvalid
// and the place; warns of what has no effect with this protocol.
Status ParseProtocolKeys(Reader* reader, const Fields& fields, Endpoint* endpoint);

}  // namespace policy
