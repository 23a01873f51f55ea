// SPDX-License-Identifier: Apache-2.0
// Whom Sigstore's signatures are believed from: certificate authorities, transparency logs,
// timestamp authorities and certificate logs, each with the time in which it may be believed.
// sigstore_trustroot.proto.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sigstore {

struct TrustedRoot {};

// Parses `trusted_root.json` (media types of v0.1 and v0.2), or several, one a line (JSONL, as
// GitHub gives them). kInvalid for anything malformed: a root that is half understood trusts
// nobody.
Result<TrustedRoot> ParseTrustedRoot(std::string_view json);

// The public-good instance's, as it was when this program was built.
const TrustedRoot& EmbeddedTrustedRoot();

}  // namespace sigstore
