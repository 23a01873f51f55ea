// SPDX-License-Identifier: Apache-2.0
// The built-in middleware `openshell/regex`: writes [REDACTED] over `sk-[A-Za-z0-9_-]{16,}` in what
// a client sends (OpenShell; policy::Middleware says to which hosts).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/body_filter.h"
#include "policy/model/policy.h"

namespace gateway {

// Writes over keys in bytes that come in pieces. Holds back at most the 18 bytes that may become
// one; a longer key is dropped as it comes.
class KeyEraser {
 public:
  // Appends to `out` what is settled; with `end`, all of it.
  void Feed(std::string_view in, bool end, std::string& out);

 private:
  std::string held_;     // The beginning of what may be a key, shorter than one.
  bool inside_ = false;  // Behind [REDACTED], in the rest of the key.
};

// The redaction that a request needs: a filter, a refusal since it cannot be looked into, or
// neither.
struct Redaction {
  std::unique_ptr<StreamFilter> filter;
  std::optional<OutgoingRefusal> refusal;
};

// Plans the redaction. `fields` are the request's. A compressed body, and later one that is not
// UTF-8, passes if every middleware for this host is fail_open; otherwise 503 `middleware_failed`.
Redaction PlanRedaction(const std::vector<policy::Middleware>& middlewares, std::string_view host,
                        const codec::HttpFields& fields);

// True if client messages of a WebSocket to this host are to pass a KeyEraser.
bool RedactsMessages(const std::vector<policy::Middleware>& middlewares, std::string_view host);

}  // namespace gateway
