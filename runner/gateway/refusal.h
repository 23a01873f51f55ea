// SPDX-License-Identifier: Apache-2.0
// What the gateway itself answers when it does not pass something on. OpenShell's formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gateway {

// A complete HTTP/1.1 response with a JSON body of `error`, `detail` and, if not empty, `reason`.
// `status` is one of those that StatusText knows. The connection closes behind it.
std::string RenderRefusal(int status, std::string_view error, std::string_view detail,
                          std::string_view reason = {});

// A head without body: 400, 431, 503.
std::string RenderBareRefusal(int status);

// An inspected request that a rule (or the lack of one) refused.
struct RequestDenial {
  std::string policy;  // "-" when none matched.
  std::string reason;
  std::string method;
  std::string path;  // Redacted, without a query.
  std::string host;
  uint16_t port = 0;
  std::string binary;
};
std::string RenderRequestDenial(const RequestDenial& denial);

}  // namespace gateway
