// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace codec {

// Returns `bytes` as a gzip file (RFC 1952) without a name or time: equal input gives equal output.
std::string Gzip(std::string_view bytes);

}  // namespace codec
