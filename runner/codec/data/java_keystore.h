// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace codec {

// A Java key store (JKS, version 2, password "changeit") that trusts every certificate of `pem`:
// Java reads no PEM. What is no certificate is left out.
std::string RenderJavaKeyStore(std::string_view pem);

}  // namespace codec
