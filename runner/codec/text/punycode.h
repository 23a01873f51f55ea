// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Returns a host name with each label that is not ASCII in its form for the name service:
// "xn--...", RFC 3492. Upper case is not mapped. Nothing for what is not UTF-8, is ASCII already,
// or has no such form.
std::optional<std::string> PunycodeHost(std::string_view host);

}  // namespace codec
