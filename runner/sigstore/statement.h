// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sigstore/trust/checked.h"
#include "sigstore/verify.h"

namespace sigstore {

// The predicate type of statements by which cosign signs images.
inline constexpr std::string_view kCosignSign = "https://sigstore.dev/cosign/sign/v1";

// Checks that an envelope's `payload` is an in-toto statement about the artifact `digest_hex`, of a
// type that `options` lets count; returns the type. Fails with kPayloadType, kStatement, kSubject
// or kPredicateType, or what is wrong with its JSON.
Checked<std::string> CheckStatement(std::string_view payload_type, std::string_view payload,
                                    std::string_view digest_hex, const VerifyOptions& options);

}  // namespace sigstore
