// SPDX-License-Identifier: Apache-2.0
// Trusted roots: one that is accepted gives every log a key's name and a start, every authority a
// certificate; an error begins with a reason's code.
#include <cstddef>
#include <cstdint>

#include "sigstore/trust/trusted_root.h"

namespace {

void CheckLogs(const std::vector<sigstore::TrustedLog>& logs) {
  for (const sigstore::TrustedLog& log : logs) {
    ENSURE(!log.key_id.empty() && !log.key.empty());
    ENSURE(!log.valid_for.end || log.valid_for.start <= *log.valid_for.end);
  }
}

void CheckAuthorities(const std::vector<sigstore::TrustedAuthority>& authorities) {
  for (const sigstore::TrustedAuthority& authority : authorities) {
    ENSURE(!authority.certificates.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Result<sigstore::TrustedRoot> root =
      sigstore::ParseTrustedRoot({reinterpret_cast<const char*>(data), size});
  if (!root.ok()) {
    ENSURE(root.error().code == Code::kInvalid);
    ENSURE(root.error().what.find(": ") != std::string::npos);
    return 0;
  }
  ENSURE(!root.value().instances.empty());
  for (const sigstore::TrustedInstance& instance : root.value().instances) {
    CheckLogs(instance.logs);
    CheckLogs(instance.certificate_logs);
    CheckAuthorities(instance.certificate_authorities);
    CheckAuthorities(instance.timestamp_authorities);
  }
  return 0;
}
