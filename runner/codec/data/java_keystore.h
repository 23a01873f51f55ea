// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace codec {

// A Java key store (JKS, version 2, password "changeit") that trusts every certificate of `pem`:
// Java does not read PEM. Whatever is not a certificate is left out.
std::string RenderJavaKeyStore(std::string_view pem);

}  // namespace codec
