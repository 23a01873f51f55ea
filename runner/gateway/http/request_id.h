// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "codec/wire/http_head.h"

namespace gateway {

// At most 128 letters, digits and "-_.:+/=@": what services log and hand on.
bool IsRequestId(std::string_view id);

// On the way to where a credential is bound, the gateway is the one that vouches for a request: an
// X-Request-ID that is malformed (or one of several) is replaced by `fresh`. A valid one stays, and
// none is added.
void KeepRequestId(codec::HttpFields* fields, const std::string& fresh);

// 32 random hexadecimal digits.
std::string NewRequestId();

}  // namespace gateway
