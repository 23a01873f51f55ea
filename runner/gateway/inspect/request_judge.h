// SPDX-License-Identifier: Apache-2.0
// Judges one HTTP request: from its head to the head that is forwarded, or the refusal. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/wire/http_head.h"
#include "gateway/credential/credentials.h"
#include "gateway/http/authority.h"
#include "gateway/http/body_filter.h"
#include "gateway/http/refusal.h"
#include "gateway/inspect/live_policy.h"
#include "policy/decide/compiled.h"
#include "policy/decide/decide.h"
#include "record/event.h"

namespace gateway {

// The context that all requests on one connection share.
struct RequestContext {
  const LivePolicy::Lease& lease;
  const policy::Route& route;  // The way that the connection was allowed.
  const std::string& policy_file;
  const Credentials& credentials;
  const policy::Caller& caller;
  Authority authority;        // The authority that the connection was allowed for.
  std::string scheme;         // "http" or "https".
  bool confidential = false;  // True for TLS upstream, and for this machine's loopback.
  bool forward = false;       // An absolute-form request to the proxy itself, not in a tunnel.

  const policy::Policy& policy() const { return lease.compiled().source(); }
  uint16_t default_port() const { return scheme == "https" ? 443 : 80; }
};

struct RequestVerdict {
  enum Kind {
    kPass,    // Send `request`.
    kRefuse,  // Answer `refusal`, if there is one, and close: in a tunnel what is malformed gets
              // none.
  };
  Kind kind = kRefuse;
  record::Event event;  // To be recorded first; its process is left to the caller.
  std::optional<Refusal> refusal;
  int grant = -1;  // Not -1, with kRefuse: to be judged again once this token is there.

  // The request of a kPass. It may hold credentials: it goes to the authority's host and nowhere
  // else.
  OutgoingRequest request;
  bool websocket = false;                      // True if an upgrade is asked for and passed on.
  std::string path = {};                       // Canonical, as the client wrote it.
  const policy::Endpoint* endpoint = nullptr;  // The endpoint whose options apply; may be null.
  std::string query = {};                      // Raw, likewise.
  // If not zero, the verdict is only on the head; JudgeWholeBody has the last word, and sees at
  // most this many bytes.
  size_t judged_body_bytes_max = 0;
  bool expects_continue = false;  // The client waits for "100 Continue" before it sends the body.
};

// Judges a request. `known` is the framing of the body if the version of HTTP gives it; otherwise
// the head does.
RequestVerdict JudgeRequest(const RequestContext& context, const codec::RequestHead& head,
                            const std::optional<codec::BodyFraming>& known = {});

// Returns the verdict on a request that JudgeRequest let pass for its head alone; nullopt if it
// passes, and `allowed` then has what is to be recorded. No body means that it is longer than
// judged_body_bytes_max.
std::optional<RequestVerdict> JudgeWholeBody(const RequestContext& context,
                                             const codec::RequestHead& head,
                                             const codec::BodyFraming& framing,
                                             std::optional<std::string_view> body,
                                             RequestVerdict& allowed);

// Returns the answer to a request that JudgeRequest let pass when its body names a method: the
// refusal of the first of PUT, PATCH, DELETE and GET that is not allowed there. Returns nullopt if
// all of them are allowed, or if the body is judged anyway.
std::optional<OutgoingRefusal> RefuseOtherMethods(const RequestContext& context,
                                                  const RequestVerdict& allowed);

// Returns the verdict on a request that JudgeRequest let pass, and whose body or a budget did not.
RequestVerdict RefuseAllowed(const RequestVerdict& allowed, const OutgoingRefusal& refusal);

// Returns the verdict on bytes that are not a request head.
RequestVerdict JudgeMalformed(const RequestContext& context, std::string_view why);

}  // namespace gateway
