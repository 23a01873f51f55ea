// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 connection: its socket, its engine, and its streams as bodies that coroutines read and
// write. Unread data is not acknowledged, so that a slow reader slows the sender; in the other
// direction, only what the peer accepts is read from the source.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/async/event_loop.h"
#include "gateway/async/stream.h"
#include "gateway/http/http2_engine.h"
#include "gateway/http/message.h"

namespace gateway {

class Http2Session;

// One stream, held by one coroutine (two while a body goes each way) until it is released.
class Http2Stream final : public BodyReader, public BodyWriter {
 public:
  struct Head {
    codec::HttpFields fields;
    bool end = false;  // No body, no trailers.
  };

  // Returns, for a client, the next head of the answer. Fails as Read does.
  Task<Result<Head>> ReadHead(Deadline deadline);

  Task<Result<Piece>> Read(Deadline deadline) override;
  bool ready() const override;
  const codec::HttpFields& trailers() const override { return trailers_; }
  void Cancel() override;

  Task<Status> Write(std::string_view bytes) override;
  Task<Status> Flush() override;
  Task<Status> Finish(const codec::HttpFields& trailers) override;

  // Sends, for a server, the answer's head. Interim ones cannot end.
  Status SendResponse(const codec::HttpFields& fields, bool end);
  Status AnswerInterim(const codec::HttpFields& fields);
  // Sends RST_STREAM, unless the stream is closed. Its waiters wake up with an error.
  void Reset(Http2Code code);
  // Called once, from within the session, when the stream ends before our half of it has.
  void WhenGone(std::function<void()> call) { when_gone_ = std::move(call); }

  bool answered() const { return answered_; }
  // True if the peer says that it has done nothing for this stream.
  bool refused() const { return refused_; }

 private:
  friend class Http2Session;
  Http2Stream(Http2Session& session, int32_t id);
  void Break(Error error);
  void DropUnread();

  Http2Session& session_;
  int32_t id_;
  // The receiving half.
  std::deque<Head> heads_;
  std::string arrived_;  // Bytes since reading_ was filled. The two and the heads are what is held.
  std::string reading_;  // The piece that was given last is a part of it.
  size_t given_ = 0;     // The bytes of reading_ that were given.
  size_t unconsumed_ = 0;
  bool ended_ = false;
  bool cancelled_ = false;
  codec::HttpFields trailers_;
  Signal arrival_;
  // Out.
  std::string_view sending_;  // The bytes of the waiter in Write.
  bool finishing_ = false;
  bool finished_ = false;  // Our half has ended.
  codec::HttpFields last_fields_;
  Signal departure_;

  bool answered_ = false;
  bool closed_ = false;
  bool refused_ = false;
  std::optional<Error> broken_;
  std::function<void()> when_gone_;
};

class Http2Session final : private Http2Engine::Listener {
 public:
  // Answers the streams that a client opens; outlives the session.
  class Acceptor {
   public:
    virtual ~Acceptor() = default;
    // Answers or resets the stream, which is released behind it.
    virtual Task<void> Serve(Http2Stream& stream, Http2Stream::Head head) = 0;
    virtual void OnMalformed(std::string_view why) = 0;
  };

  // A server's side of the connection with `acceptor`, a client's without one. `stream` is
  // connected, and inside TLS where there is any; it is borrowed, and so is `loop`.
  Http2Session(EventLoop& loop, Stream& stream, Acceptor* acceptor);
  ~Http2Session();

  // Carries the connection until it is over and every stream is released. Once.
  Task<void> Run();
  // Ends it: GOAWAY, and streams under way are cut.
  void Close();

  // Opens, for a client, a new stream, its head sent. Release it before the session goes.
  Result<Http2Stream*> Open(const codec::HttpFields& fields, bool end);
  bool may_open() const;
  void Release(Http2Stream& stream);
  // Streams that were opened in all.
  size_t opened() const { return opened_count_; }

 private:
  friend class Http2Stream;

  void OnHead(int32_t id, codec::HttpFields fields, bool end) override;
  bool OnData(int32_t id, std::string_view bytes) override;
  void OnEnd(int32_t id, codec::HttpFields trailers) override;
  void OnClose(int32_t id, Http2Code code) override;
  void OnMalformed(int32_t id, std::string_view why) override;
  Http2Engine::Taken OnTake(int32_t id, char* out, size_t size) override;

  Http2Stream* Find(int32_t id);
  Http2Stream& Add(int32_t id);
  Task<void> ReadAll();
  Task<void> WriteAll();
  bool Feed(std::string_view bytes);
  void ServeOpened();
  Task<void> ServeStream(Http2Stream& stream, Http2Stream::Head head);
  bool MayGoOn() const;

  EventLoop& loop_;
  Stream& stream_;
  Acceptor* acceptor_;
  Http2Engine engine_;
  std::unordered_map<int32_t, std::unique_ptr<Http2Stream>> streams_;
  std::vector<int32_t> opened_;  // By the bytes that are being fed: to be served behind them.
  size_t opened_count_ = 0;
  Deadline idle_deadline_;
  std::string why_;  // The reason why the connection ended.
  bool closing_ = false;
  bool over_ = false;  // True once nothing more is read.
  Signal work_;        // The engine may have something to send.
  Signal released_;
  Signal writer_done_;
};

}  // namespace gateway
