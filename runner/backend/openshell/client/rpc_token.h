// SPDX-License-Identifier: Apache-2.0
// The token for a gateway of OpenShell 0.1 whose users log in with OpenID Connect.
#pragma once

#include <string>

#include "base/result.h"
#include "base/secret.h"
#include "codec/data/json.h"

namespace openshell {

// Returns a token that lasts for half a minute at least, for the gateway that `entry`, its
// metadata.json, is about. With OPENSHELL_OIDC_CLIENT_SECRET, it is issued to the client that the
// entry names (RFC 6749, 4.4) and kept in the directory `own`. Without, it is the one of the user's
// login in the directory `registered`, refreshed there if it has ended or is about to. Fails with
// kSetup if there is no token; the hint is empty if the user has to log in.
Result<Secret> TokenFor(const codec::Json& entry, const std::string& own,
                        const std::string& registered);

}  // namespace openshell
