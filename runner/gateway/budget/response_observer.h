// SPDX-License-Identifier: Apache-2.0
// The interface of budgets: consulted before a request is sent, and notified of the response.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "codec/wire/http_head.h"
#include "gateway/http/authority.h"
#include "gateway/http/body_filter.h"

namespace gateway {

// Sees one request's body as it leaves, and its answer as it passes to the client; changes nothing.
class ResponseObserver {
 public:
  virtual ~ResponseObserver() = default;
  // Called with the size of each piece of the request's body before it is given to the server.
  virtual void OnSent(size_t bytes) = 0;
  virtual void OnHead(const codec::ResponseHead& head) = 0;
  // Called with the next bytes of the body: without chunks, in the content coding that the server
  // chose.
  virtual void OnBody(std::string_view bytes) = 0;
  // The last call. `complete` is false if the answer was cut off, before its head perhaps: the
  // client had given up, the server failed, or the run ended.
  virtual void OnEnd(bool complete) = 0;
};

// Asked about each request that the policy has allowed. One per process.
class RequestGuard {
 public:
  struct Admission {
    std::optional<OutgoingRefusal> refusal;
    std::unique_ptr<ResponseObserver> observer;  // Null if the answer is not observed.
  };

  virtual ~RequestGuard() = default;
  // Returns how much of the body Admit has to see: 0 for none of it; otherwise the body is read
  // whole, up to that many bytes.
  virtual size_t BodyBytesWanted(const OutgoingRequest& request) const = 0;
  // Decides whether the request may go. Admit may change its fields (the codings that it accepts,
  // say), and its body, which is there only if it was read whole.
  virtual Admission Admit(const Authority& authority, OutgoingRequest& request) = 0;
};

}  // namespace gateway
