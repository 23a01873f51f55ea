// SPDX-License-Identifier: Apache-2.0
// A request and its response, independent of the HTTP version: a head, a body in pieces, trailers.
// transaction.h is written against these interfaces; http1_*.h and http2_*.h implement them for
// clients and for servers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/wire/http_head.h"
#include "gateway/async/limits.h"
#include "gateway/async/task.h"

namespace gateway {

// One body on its way in. Read fails with kIo if it ended early, with kTemporary if it was silent
// until the deadline (only then may it be called again), with kInvalid if it is not the body that
// its head promised.
class BodyReader {
 public:
  struct Piece {
    std::string_view bytes;  // Borrowed until the next call; may be empty.
    bool end = false;        // True if nothing follows.
  };

  virtual ~BodyReader() = default;
  // Returns the next bytes as they arrive, at most kStreamBufferBytes.
  virtual Task<Result<Piece>> Read(Deadline deadline) = 0;
  // True if the next Read returns at once: a relay need not flush before it.
  virtual bool ready() const = 0;
  // Returns the fields that followed the body; meaningful after its end.
  virtual const codec::HttpFields& trailers() const = 0;
  // Gives up the rest: a waiter in Read wakes up with an error. Callable at any time.
  virtual void Cancel() = 0;
};

// One body on its way out. Each byte is given once and waits until the peer takes it. A head and
// bytes given before may be held back, to travel with what follows, until Flush or Finish.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  virtual Task<Status> Write(std::string_view bytes) = 0;
  virtual Task<Status> Flush() = 0;
  // Ends the body, also if there was none at all. Trailers are sent where the framing has room for
  // them.
  virtual Task<Status> Finish(const codec::HttpFields& trailers) = 0;
};

// One request of a client that was read up to its body, and the place for its answer. The head of
// an HTTP/2 request is given in the form of HTTP/1: origin-form target, a Host field.
class ClientRequest {
 public:
  virtual ~ClientRequest() = default;
  virtual const codec::RequestHead& head() const = 0;
  virtual codec::BodyFraming framing() const = 0;  // kUntilClose: HTTP/2 without a length.
  virtual BodyReader& body() = 0;

  // Sends an interim answer: 100, 103. It is dropped if the client knows none (HTTP/1.0).
  virtual Task<Status> SendInterim(int status, const codec::HttpFields& fields) = 0;
  // Sends the answer's head: end-to-end fields, which with kNone may hold the Content-Length of an
  // answer to HEAD. `framing` is how its body will come; kUntilClose if the length is not known.
  // Behind 101, body() and answer() carry the protocol that the connection was switched to, both
  // ways, until its end.
  virtual Task<Status> SendHead(int status, std::string_view reason,
                                const codec::HttpFields& fields,
                                const codec::BodyFraming& framing) = 0;
  virtual BodyWriter& answer() = 0;
  // Lets the client see that something is missing: RST_STREAM, or the connection cut. Without a
  // head before it, the connection ends without an answer.
  virtual void Abort() = 0;
  // Keeps the client from sending another request on this connection after this one (HTTP/1 only).
  // Must be called before SendHead, which tells the client.
  virtual void CloseAfter() = 0;
  // Has `call` called once, when the client gives this request up before its answer has ended; null
  // cancels that. HTTP/2 alone can tell; a client of HTTP/1 is seen to be gone by a failed write.
  virtual void WhenGone(std::function<void()>) {}
  virtual bool is_http2() const = 0;
};

// The other side: one request sent to a server.
class ServerRequest {
 public:
  virtual ~ServerRequest() = default;
  // Sends the request's head. `fields` are the judged ones, Host first; this function wipes
  // credentials from any copy that it makes. `framing` is kUntilClose if the body's length is not
  // known.
  virtual Task<Status> SendHead(std::string_view method, std::string_view target,
                                const codec::HttpFields& fields,
                                const codec::BodyFraming& framing) = 0;
  virtual BodyWriter& body() = 0;
  // Returns the next head: interim ones (below 200) one by one, then the final one.
  virtual Task<Result<codec::ResponseHead>> ReadHead(Deadline deadline) = 0;
  // Returns the framing of the answer, after the final head. With kUntilClose only the end of the
  // connection ends the body, which may be cut (HTTP/1 alone; HTTP/2 without a length gives
  // kChunked). Behind 101 it is as in SendHead above.
  virtual codec::BodyFraming framing() const = 0;
  virtual BodyReader& answer() = 0;
  // Cuts the request off: waiters for its body or its answer wake up with an error.
  virtual void Abort() = 0;
  // Returns true if nothing of an answer has arrived, and the connection had carried a request
  // before: a request without a body may be sent again on a new one.
  virtual bool may_repeat() const = 0;
};

// Handles each request of a client's session; outlives the session.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Answers or aborts it. Sessions of HTTP/2 have several of these under way at once.
  virtual Task<void> Handle(ClientRequest& request) = 0;
  // Takes note that what arrived is not a request, for the record. The session then ends the
  // connection, or the stream.
  virtual void OnMalformed(std::string_view why) = 0;
};

}  // namespace gateway
