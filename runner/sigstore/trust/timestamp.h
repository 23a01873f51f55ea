// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/instant.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// Returns when a timestamp authority of the trusted root saw `signature`, by its `response` (RFC
// 3161, TimeStampResp in DER). Certificates that the response brings help only if an authority of
// the root issued them. Fails with kTsa; with kCertExpired if a certificate of the authority was
// not valid at that time, with kCaValidity if the root does not trust it at that time. Returns
// nullopt for an authority that the root does not know.
Checked<std::optional<Instant>> VerifyTimestamp(std::string_view response,
                                                std::string_view signature,
                                                const std::vector<TrustedAuthority>& authorities);

}  // namespace sigstore
