// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4: requests are signed again with keys that the client does not have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/credential/credentials.h"
#include "gateway/http/body_filter.h"
#include "policy/model/policy.h"

namespace gateway {

// Borrowed. `session_token` may be empty.
struct AwsKeys {
  std::string_view access_key_id;
  std::string_view secret_access_key;
  std::string_view session_token;
};

struct SigningScope {
  std::string region;
  std::string service;
  int64_t now = 0;  // Seconds since 1970.
};

// The parts of a request that are signed. Every field given is signed, so give those that arrive as
// they leave.
struct SignedRequest {
  std::string_view method;
  std::string_view path;   // The path as it is sent.
  std::string_view query;  // The query as it is sent, without '?'.
  codec::HttpFields fields;
  std::string payload_hash;  // 64 hexadecimal digits, or "UNSIGNED-PAYLOAD".
};

// Returns a time such as "20150830T123600Z".
std::string AmzDate(int64_t now);

// The text that is hashed into the string to sign, and its list of field names: the documentation
// calls them CanonicalRequest and SignedHeaders.
struct CanonicalRequest {
  std::string text;
  std::string signed_names;
};
CanonicalRequest NewCanonicalRequest(const SignedRequest& request, const SigningScope& scope);

// Returns the value of Authorization. `request.fields` has X-Amz-Date (and X-Amz-Security-Token)
// already.
std::string SignRequest(const AwsKeys& keys, const SigningScope& scope,
                        const SignedRequest& request);

// Returns "us-east-1" of "bedrock-runtime.us-east-1.amazonaws.com"; "us-east-1" for an AWS host
// without a region (global services); empty for any other host.
std::string RegionOf(std::string_view host);

// The signing of requests to one endpoint, as the policy or a provider has it.
struct SigningPlan {
  policy::Signing mode = policy::Signing::kNone;
  std::string service;
  std::string region;
};

// Returns how many bytes of the body signing must see: 0 where the payload is not signed, or where
// the client's own hash of it (X-Amz-Content-Sha256) can be signed as it is.
size_t SignedBodyBytes(const SigningPlan& plan, const codec::HttpFields& fields);

// Signs the request with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if there is one,
// AWS_SESSION_TOKEN, as they are bound at `target`. To be the last step. `credentials` and the host
// are borrowed; `now` gives seconds since 1970.
std::unique_ptr<WholeBodyStep> NewSigner(const Credentials& credentials,
                                         const CredentialTarget& target, SigningPlan plan,
                                         int64_t (*now)());

}  // namespace gateway
