// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/log_key.h"

namespace sigstore {

const TrustedLog* FindLog(const std::vector<TrustedLog>& logs, std::string_view key_id) {
  for (const TrustedLog& log : logs) {
    if (log.key_id == key_id) return &log;
  }
  return nullptr;
}

Checked<PublicKey> KeyOf(const TrustedLog& log) {
  return log.key_is_pkcs1 ? PublicKey::FromPkcs1(log.key, Reason::kTrustRoot)
                          : PublicKey::FromSpki(log.key, Reason::kTrustRoot);
}

}  // namespace sigstore
