// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway/body_pump.h"
#include "gateway/identity.h"
#include "gateway/request_judge.h"
#include "gateway/services.h"
#include "gateway/stream.h"
#include "gateway/task.h"
#include "gateway/upstream.h"

namespace gateway {

// HTTP/1 between one client connection and one destination: request after request, each judged,
// recorded and then carried out.
class Exchange {
 public:
  // Everything is borrowed for the life of the exchange. `upstream` may be connected already.
  Exchange(Services& services, const Answer& owner, const RequestContext& context, Stream& client,
           Upstream& upstream)
      : services_(services),
        owner_(owner),
        context_(context),
        client_(client),
        upstream_(upstream) {}

  // Reads requests until the client finishes or one of them ends the connection.
  Task<Done> RunAll();
  // Carries out one request whose head was read. True: the connection can carry another.
  Task<bool> Run(codec::RequestHead head);

  // Records a verdict and gives its answer. Always false: the connection is over.
  Task<bool> Refuse(RequestVerdict verdict);

 private:
  // The head of the answer, interim ones passed on; not `ok`: `why`, and whether nothing came at
  // all.
  struct Answered {
    bool ok = false;
    bool silent = false;
    codec::ResponseHead head;
    std::string why;
  };

  bool RecordOwned(Event event);
  Task<bool> Fail(std::string why);
  Task<Status> Connect();
  Task<Status> ConnectAndSend(std::string_view head);
  Task<bool> Transact(RequestVerdict verdict);
  Task<bool> Converse(const RequestVerdict& verdict, std::string_view head);
  Task<Done> PumpRequest(codec::BodyFraming framing, BodyOutcome& outcome, Signal& done);
  Task<Done> EndPump(Signal& done);
  Task<Answered> ReadAnswer(const RequestVerdict& verdict);
  Task<bool> SendAnswer(const RequestVerdict& verdict, const codec::ResponseHead& head);
  Task<bool> SwitchProtocols(const codec::ResponseHead& head);

  Services& services_;
  const Answer& owner_;
  const RequestContext& context_;
  Stream& client_;
  Upstream& upstream_;
};

}  // namespace gateway
