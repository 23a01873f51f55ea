// SPDX-License-Identifier: Apache-2.0
// Google's credential files, and the requests that turn them into access tokens. Pure;
// token_grant.h sends them. References: RFC 7523 (service accounts), RFC 6749 (refresh tokens), RFC
// 8693 and Google's AIP-4117 (workload identity federation).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/credential/bound_secret.h"
#include "gateway/credential/exchange.h"

namespace gateway {

// Reads a file that a credential file names: the supervisor does, the gateway cannot.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Parses `text`, a credential file: its JSON, or that in base64. Types: service_account,
// authorized_user, external_account with a `url` or a `file` source, which is read for the first
// token. Fails with kInvalid for anything else, with kUnsupported for other types and
// sources. Errors never quote the text.
Result<TokenGrant> ParseGoogleCredentials(std::string_view text, const FileReader& read);

// Asks for an access token of a kServiceAccount or kRefreshToken grant at `now` (seconds since
// 1970). Fails with kInvalid if the key of a service account is malformed.
Result<OwnRequest> TokenRequest(const TokenGrant& grant, int64_t now);

}  // namespace gateway
