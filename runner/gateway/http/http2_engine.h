// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 connection without its socket: bytes in, bytes out, and the events of its streams.
// Frames and HPACK are nghttp2's; the bounds on the memory and work that a peer can cause are here.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/wire/http_head.h"

struct nghttp2_session;

namespace gateway {

struct Http2Callbacks;  // Defined in http2_engine.cc.

// The codes of RST_STREAM and GOAWAY that are sent or understood here (RFC 9113, 7).
enum class Http2Code : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11,
};

class Http2Engine {
 public:
  enum class Role { kServer, kClient };

  // The next piece of a body to send: `size` bytes were put out; `end` with the last of them, and
  // then `trailers` unless it is empty. `size` is 0 without `end` if there is nothing to send yet.
  struct Taken {
    size_t size = 0;
    bool end = false;
    codec::HttpFields trailers = {};
  };

  // Called from within Feed and Next. It may call Submit..., Reset and Consume.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Called with a head: a request's (server; the stream is new) or an answer's, interim ones too
    // (client).
    virtual void OnHead(int32_t stream, codec::HttpFields fields, bool end) = 0;
    // Returns false if the bytes are not wanted; they are dropped. Otherwise they must be consumed.
    virtual bool OnData(int32_t stream, std::string_view bytes) = 0;
    virtual void OnEnd(int32_t stream, codec::HttpFields trailers) = 0;
    // Called once the stream is closed in both directions.
    virtual void OnClose(int32_t stream, Http2Code code) = 0;
    // Called if the bytes that arrived on the stream are not an HTTP message; the stream is reset.
    virtual void OnMalformed(int32_t stream, std::string_view why) = 0;
    virtual Taken OnTake(int32_t stream, char* out, size_t size) = 0;
  };

  // `listener` outlives the engine.
  Http2Engine(Role role, Listener& listener);
  ~Http2Engine();
  Http2Engine(const Http2Engine&) = delete;
  Http2Engine& operator=(const Http2Engine&) = delete;

  // Takes what has arrived. An error, or wants_more() false behind it: the connection is over, and
  // what Next still gives ends it (GOAWAY).
  Status Feed(std::string_view bytes);
  bool wants_more() const;
  // Returns the next bytes to send, valid until the next call; empty if there are none now.
  Result<std::string_view> Next();

  // Opens a new stream of a client and returns its number. `fields` are wiped by their owner; what
  // is kept of them here is wiped when it is freed.
  Result<int32_t> SubmitRequest(const codec::HttpFields& fields, bool end);
  // Sends the head of a server's answer; interim ones cannot end.
  Status SubmitResponse(int32_t stream, const codec::HttpFields& fields, bool end);
  Status SubmitInterim(int32_t stream, const codec::HttpFields& fields);
  // Called when OnTake has something again.
  void Resume(int32_t stream);
  void Reset(int32_t stream, Http2Code code);
  // Reports that `bytes` of a stream, which may be closed already, were passed on: the peer may
  // send as many again.
  void Consume(int32_t stream, size_t bytes);
  // Sends GOAWAY: streams under way go on, new ones are not taken.
  void Finish(Http2Code code);

  // Return, for a client, whether the peer takes new streams, and how many at once.
  bool may_open() const;
  size_t streams_max() const;
  // Returns when the first byte of a head that is not complete arrived.
  std::optional<std::chrono::steady_clock::time_point> head_since() const { return head_since_; }
  // Returns why the connection was ended here or by the peer; empty if in order.
  const std::string& failure() const { return failure_; }

 private:
  friend struct Http2Callbacks;
  struct Deleter {
    void operator()(nghttp2_session* session) const;
  };

  void SendSettings();
  // Reports it, once per stream.
  void ReportMalformed(int32_t stream, std::string_view why);
  // Counts a frame that asks for work and brings none; too many of them end the connection.
  void Spend(double cost);
  void Earn(double credit);

  Role role_;
  Listener& listener_;
  std::unique_ptr<nghttp2_session, Deleter> session_;
  // The one header block that is being received: blocks never interleave (RFC 9113, 4.3).
  codec::HttpFields block_;
  size_t block_bytes_ = 0;
  std::optional<std::chrono::steady_clock::time_point> head_since_;
  int32_t told_ = 0;  // The stream that was last said to be malformed.
  double patience_;
  std::chrono::steady_clock::time_point patience_at_;
  std::string failure_;
};

}  // namespace gateway
