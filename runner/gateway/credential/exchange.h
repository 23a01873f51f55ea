// SPDX-License-Identifier: Apache-2.0
// The requests that exchange one token for another, and their answers. Pure; token_grant.h sends
// them. References: RFC 8693, RFC 7523, RFC 6749, AWS STS (AssumeRoleWithWebIdentity).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/wire/http_head.h"
#include "gateway/credential/bound_secret.h"

namespace gateway {

// A request of the gateway's own.
struct OwnRequest {
  std::string method;
  std::string url;             // https.
  codec::SecretFields fields;  // Without Host.
  SecretString body;
};

// Renders `pairs` as application/x-www-form-urlencoded for a POST to `url`.
OwnRequest NewFormRequest(const std::string& url,
                          const std::vector<std::pair<std::string_view, std::string_view>>& pairs);

// Asks for the subject token of a kExchange grant that has a subject_url.
OwnRequest SubjectRequest(const TokenGrant& grant);
// Parses the subject token in the response to SubjectRequest(). Fails with kInvalid if there is
// none.
Result<Secret> ParseSubject(const TokenGrant& grant, int status, std::string_view body);

// Returns the request of `step`. `token` is the one that the step before gave.
OwnRequest StepRequest(const ExchangeStep& step, std::string_view subject, std::string_view token);

struct AccessToken {
  std::vector<Secret> values;  // One; of AWS: key id, key and session token.
  std::chrono::seconds lifetime{0};
};
// Parses the response of a token service. Fails with kRefused and the service's own error codes
// ("invalid_grant", "AADSTS700213") for a status of 400 to 499 but 429, with kTemporary for 429 and
// 5xx, else with kInvalid. Of an error's body nothing else is quoted: it may echo the token.
Result<AccessToken> ParseToken(int status, std::string_view body);
// The same for the XML of AWS STS. `now` is in seconds since 1970, for the lifetime.
Result<AccessToken> ParseAwsSession(int status, std::string_view body, int64_t now);

// Claims of a JSON Web Token, whose signature was not verified. Texts are empty if the token has no
// such claim, or is not a JSON Web Token.
struct JwtFacts {
  std::string issuer;
  std::string subject;
  std::string audience;  // The first, of several.
  int64_t expires = 0;   // Seconds since 1970; 0 if the token does not say.
};
JwtFacts ReadJwt(std::string_view token);

// A token that names the job's identity, when a service accepted it.
struct TakenIdentity {
  std::string provider;
  JwtFacts facts;
};

// Returns "issuer I, subject S, audience A, expires in N s", without those that the token lacks.
std::string DescribeJwt(const JwtFacts& facts, int64_t now);

}  // namespace gateway
