// SPDX-License-Identifier: Apache-2.0
// Placeholders in bodies: replaced where the policy's endpoint asks for it
// (`request_body_credential_rewrite`, `websocket_credential_rewrite`), and otherwise a reason to
// refuse, so that a client does not continue with a value that is not its key.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/credential/credentials.h"
#include "gateway/http/body_filter.h"

namespace gateway {

// The kinds of body that can be rewritten (OpenShell): JSON, forms and text, not compressed. kOther
// is not rewritten.
enum class BodyKind { kJson, kForm, kText, kOther };
BodyKind KindOfBody(const codec::HttpFields& fields);

// Puts values where placeholders stand in `body`, escaped as its kind wants it. A body of kOther,
// or one that is not UTF-8, must hold no placeholder. On a refusal the body may be half changed.
std::optional<CredentialRefusal> RewriteBody(const Credentials& credentials,
                                             const CredentialTarget& target, BodyKind kind,
                                             std::string* body);

// Does the same for one text message of a WebSocket: JSON when it looks like it, else text.
std::optional<CredentialRefusal> RewriteMessage(const Credentials& credentials,
                                                const CredentialTarget& target,
                                                std::string* message);

// Makes RewriteBody a step. `credentials` and `host` are borrowed.
std::unique_ptr<WholeBodyStep> NewBodyRewriter(const Credentials& credentials,
                                               const CredentialTarget& target);

// Refuses a body with a placeholder in it, as it streams past.
std::unique_ptr<StreamFilter> NewMarkerFilter();

// Makes a filter where the whole body is there anyway.
std::unique_ptr<WholeBodyStep> NewFilterStep(std::unique_ptr<StreamFilter> filter);

// Returns the refusal as an answer to the client, and for the record.
OutgoingRefusal RefuseCredential(const CredentialRefusal& refusal);

}  // namespace gateway
