// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/public_key.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// Returns the log that `key_id` names; nullptr for none.
const TrustedLog* FindLog(const std::vector<TrustedLog>& logs, std::string_view key_id);

// Fails with kTrustRoot: the root's key is malformed.
Checked<PublicKey> KeyOf(const TrustedLog& log);

}  // namespace sigstore
