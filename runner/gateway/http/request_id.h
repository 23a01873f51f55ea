// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "codec/wire/http_head.h"

namespace gateway {

// True for at most 128 letters, digits and "-_.:+/=@", as services log and hand them on.
bool IsRequestId(std::string_view id);

// Replaces an X-Request-ID that is malformed (or one of several) by `fresh`, since the gateway
// vouches for a request on the way to where a credential is bound. Keeps a valid one, and adds
// none.
void KeepRequestId(codec::HttpFields* fields, const std::string& fresh);

}  // namespace gateway
