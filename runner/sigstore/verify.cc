// SPDX-License-Identifier: Apache-2.0
#include "sigstore/verify.h"

namespace sigstore {

Verdict VerifyBundle(std::string_view, std::string_view, const VerifyOptions&, const TrustedRoot*) {
  return Rejection{Reason::kParse, "bundles are not read yet"};
}

Verdict VerifyLegacy(const LegacySignature&, std::string_view, const VerifyOptions&,
                     const TrustedRoot*) {
  return Rejection{Reason::kParse, "signature layers are not read yet"};
}

}  // namespace sigstore
