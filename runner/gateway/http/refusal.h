// SPDX-License-Identifier: Apache-2.0
// The gateway's own responses to what it refuses, in OpenShell's formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/wire/http_head.h"

namespace gateway {

// A whole answer. The connection closes behind it (HTTP/1).
struct Refusal {
  int status = 0;
  codec::HttpFields fields;  // Without framing fields.
  std::string body;
};

// Renders a complete HTTP/1.1 response, which says that the connection closes.
std::string RenderRefusal(const Refusal& refusal);
// Returns the text of a status: "Forbidden" for 403, "Error" for a status that no refusal has.
std::string_view StatusText(int status);

// Makes a JSON body of `error`, `detail` and, if not empty, `reason`.
Refusal NewRefusal(int status, std::string_view error, std::string_view detail,
                   std::string_view reason = {});

// Renders a head without body: 400, 431, 503.
std::string RenderBareRefusal(int status);

// An inspected request that a rule (or the lack of one) refused.
struct RefusedRequest {
  std::string policy;  // "-" when none matched.
  std::string reason;
  std::string method;
  std::string path;  // Redacted, without a query.
  std::string host;
  uint16_t port = 0;
  std::string binary;
  std::string protocol = "rest";  // "graphql", "json-rpc", "mcp", "websocket".
};
Refusal NewRequestRefusal(const RefusedRequest& refused);

}  // namespace gateway
