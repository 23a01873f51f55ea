// SPDX-License-Identifier: Apache-2.0
// Google's credential files, and the requests that turn them into access tokens. Pure;
// token_grant.h sends them. References: RFC 7523 (service accounts), RFC 6749 (refresh tokens), RFC
// 8693 and Google's AIP-4117 (workload identity federation).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/wire/http_head.h"
#include "gateway/credential/bound_secret.h"

namespace gateway {

// Reads a file that a credential file names: the supervisor does, the gateway cannot.
using FileReader = std::function<Result<std::string>(const std::string& path)>;

// Parses `text`, a credential file: its JSON, or that in base64. Types: service_account,
// authorized_user, external_account with a `url` or a `file` source (a file's token is read now,
// and not again). Fails with kInvalid for anything else, with kUnsupported for other types and
// sources. Errors never quote the text.
Result<TokenGrant> ParseGoogleCredentials(std::string_view text, const FileReader& read);

// A request of the gateway's own.
struct OwnRequest {
  std::string method;
  std::string url;             // https.
  codec::SecretFields fields;  // Without Host.
  SecretString body;
};

// Asks for the subject token of a kExchange grant that has a subject_url.
OwnRequest SubjectRequest(const TokenGrant& grant);
// Parses the subject token in the answer to that. Fails with kInvalid if there is none.
Result<Secret> ParseSubject(const TokenGrant& grant, int status, std::string_view body);

// Asks for an access token at `now` (seconds since 1970). `subject` is for kExchange. Fails with
// kInvalid if the key of a service account is malformed.
Result<OwnRequest> TokenRequest(const TokenGrant& grant, std::string_view subject, int64_t now);
// Asks for the token of the account that the exchanged one may impersonate.
OwnRequest ImpersonationRequest(const TokenGrant& grant, std::string_view token);

struct AccessToken {
  Secret value;
  std::chrono::seconds lifetime{0};
};
// Parses the answer to either. Fails with kRefused and the service's own error code
// ("invalid_grant"), else with kInvalid.
Result<AccessToken> ParseToken(int status, std::string_view body);

}  // namespace gateway
