// SPDX-License-Identifier: Apache-2.0
// One HTTP request: from its head to what is sent on, or to what is answered instead. Pure.
#pragma once

#include <string>
#include <string_view>

#include "codec/http_head.h"
#include "gateway/authority.h"
#include "gateway/credentials.h"
#include "gateway/ocsf.h"
#include "policy/decide.h"
#include "policy/policy.h"

namespace gateway {

// What is the same for every request on one connection.
struct RequestContext {
  const policy::Policy& policy;
  const std::string& policy_file;
  const Credentials& credentials;
  const policy::Caller& caller;
  Authority authority;  // What the connection was allowed for.
  std::string scheme;   // "http" or "https".
  policy::Handling handling = {};
  bool confidential = false;  // TLS upstream, or this machine's loopback.
  bool forward = false;       // An absolute-form request to the proxy itself, not in a tunnel.

  uint16_t default_port() const { return scheme == "https" ? 443 : 80; }
};

struct RequestVerdict {
  enum Kind {
    kPass,    // Send it on as described below.
    kRefuse,  // Answer `response`, then close.
    kClose,   // Close without an answer: malformed inside a tunnel.
  };
  Kind kind = kClose;
  Event event;           // To be recorded first; its process is left to the caller.
  std::string response;  // kRefuse.

  // kPass. These may hold credentials: they go to the authority's host and nowhere else.
  std::string method;
  std::string target;
  codec::HttpFields fields;
  codec::BodyFraming framing;
  bool websocket = false;         // An upgrade is asked for and passed on.
  bool keep_alive = false;        // As far as the client is concerned.
  bool expects_continue = false;  // The client waits for "100 Continue" before it sends the body.
  bool client_speaks_1_1 = true;
};

RequestVerdict JudgeRequest(const RequestContext& context, const codec::RequestHead& head);

// The verdict on bytes that are no request head at all.
RequestVerdict JudgeMalformed(const RequestContext& context, std::string_view why);

// True for the beginning of HTTP/2 with prior knowledge (RFC 9113, 3.4).
bool IsHttp2Preface(std::string_view bytes);

}  // namespace gateway
