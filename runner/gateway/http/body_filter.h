// SPDX-License-Identifier: Apache-2.0
// Filters that inspect the body of a request on its way to the server, and may change it: judgement
// of whole bodies, credentials, signatures, redaction. Pure: the transaction reads and sends.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "codec/wire/http_head.h"
#include "gateway/http/limits.h"
#include "gateway/http/refusal.h"
#include "record/event.h"

namespace gateway {

// The request as it will be sent.
struct OutgoingRequest {
  std::string method;
  SecretString target;
  codec::SecretFields fields;  // Host first; without framing fields, which the sender writes.
  SecretString body;           // Only where the body is read whole.
};

// Why a request is not sent, found in its body or by a budget.
struct OutgoingRefusal {
  Refusal answer;
  record::Engine engine = record::Engine::kNone;
  std::string reason;  // For the record; never holds a credential.
  // The event that the record gives as requested, where that is not the request itself.
  std::optional<record::Event> event = std::nullopt;
};

// One look at a body that streams.
class StreamFilter {
 public:
  virtual ~StreamFilter() = default;
  // Takes the next bytes and appends to `out` those that may go on. It may hold back the last
  // few, as many as the longest thing it looks for has; with `end` it holds back nothing.
  // After a refusal it is not called again; what it gave out before has gone.
  virtual std::optional<OutgoingRefusal> Filter(std::string_view in, bool end,
                                                std::string& out) = 0;
  // Gives out as many bytes as it took: a Content-Length stays true.
  virtual bool keeps_length() const = 0;
};

// One look at a request whose whole body is there. May change all of the request.
class WholeBodyStep {
 public:
  virtual ~WholeBodyStep() = default;
  virtual std::optional<OutgoingRefusal> Apply(OutgoingRequest& request) = 0;
};

// The treatment of one request's body. By default everything passes as it comes.
struct BodyTreatment {
  std::optional<OutgoingRefusal> refusal;  // The request is not sent at all.
  // If not zero, the body is read before anything is sent, up to this many bytes, then the steps
  // are taken in turn; a longer one gets `too_long`. If zero, steps are taken on the head alone.
  size_t whole_bytes_max = 0;
  std::vector<std::unique_ptr<WholeBodyStep>> steps;
  OutgoingRefusal too_long;
  // Zero above: each piece passes through these in turn.
  std::vector<std::unique_ptr<StreamFilter>> filters;
};

}  // namespace gateway
