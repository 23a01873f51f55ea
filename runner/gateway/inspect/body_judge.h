// SPDX-License-Identifier: Apache-2.0
// The gateway's responses and records for requests that are judged by their body: GraphQL,
// JSON-RPC, MCP (policy/decide/body_decide.h). Pure: the caller reads the whole body before any of
// the request is sent on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/wire/http_head.h"
#include "gateway/http/body_filter.h"
#include "policy/decide/body_decide.h"
#include "policy/decide/compiled.h"
#include "policy/decide/operation.h"

namespace gateway {

// The request as the client sent it, before credentials come into it. Everything is borrowed.
struct BodyQuestion {
  const policy::Route& route;
  const policy::Caller& caller;
  std::string_view method;
  std::string_view path;        // Canonical.
  std::string_view shown_path;  // Redacted: for records and answers.
  std::string_view query;       // Raw.
  const codec::HttpFields& fields;
  codec::BodyFraming framing;
  bool forward = false;         // Absolute-form, to the proxy itself: other answers (OpenShell).
  uint64_t policy_version = 1;  // For the record: how often the policy was loaded.
  bool websocket_upgrade = false;
};

struct BodyVerdict {
  policy::Verdict verdict;
  record::Engine engine = record::Engine::kNone;
  // Recorded when rules refuse: "graphql", "json-rpc" or "mcp", and the operations that were asked
  // for; or "websocket", for a request that only an endpoint of that protocol would let pass.
  std::string_view protocol = {};
  std::vector<policy::Operation> operations = {};
  std::string reason;   // OpenShell's words.
  std::string message;  // For the record: "GRAPHQL_L7_REQUEST ...", "JSONRPC_L7_REQUEST ...".
  std::optional<OutgoingRefusal> refusal;  // Exactly when the verdict does not allow.
};

// The part of a request that has to be read to judge it.
struct BodyNeeds {
  // If not zero, read the body, up to this many bytes, then ask JudgeBody; if it is longer,
  // JudgeTooLong.
  size_t bytes_max = 0;
  // The head alone was enough: refused (an upgrade, a method, a type or a coding of body that
  // cannot be judged, a length beyond the bound), or a stream that only receives.
  std::optional<BodyVerdict> verdict;
};

// Returns nullopt if the body does not count (policy::Route::NeedsBody): Route::Decide has the last
// word.
std::optional<BodyNeeds> FindBodyNeeds(const BodyQuestion& question);

// Returns the verdict on the request with its whole body. Replaces that of Route::Decide.
BodyVerdict JudgeBody(const BodyQuestion& question, std::string_view body);
BodyVerdict JudgeTooLong(const BodyQuestion& question);

}  // namespace gateway
