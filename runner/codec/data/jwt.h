// SPDX-License-Identifier: Apache-2.0
// JSON Web Tokens signed with an RSA key: RS256 (RFC 7518, 3.3).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/data/json.h"

namespace codec {

// Returns the token with these claims. `pem` is a private key without a passphrase; `key_id` may be
// empty. Fails with kInvalid for anything but an RSA key; the error quotes nothing of it.
Result<std::string> SignJwt(std::string_view pem, const std::string& key_id, const Json& claims);

}  // namespace codec
