// SPDX-License-Identifier: Apache-2.0
// Bodies in HTTP/1 framing on a stream, in both directions.
#pragma once

#include <string>

#include "base/secret.h"
#include "codec/wire/chunked_body.h"
#include "gateway/async/stream.h"
#include "gateway/http/message.h"

namespace gateway {

// Takes one body off a stream, as it arrives: `stream` may hold the first bytes of it already, and
// keeps what lies behind it.
class Http1BodyReader final : public BodyReader {
 public:
  Http1BodyReader(Stream& stream, const codec::BodyFraming& framing);

  Task<Result<Piece>> Read(Deadline deadline) override;
  bool ready() const override;
  const codec::HttpFields& trailers() const override { return decoder_.trailers(); }
  void Cancel() override;

  // True once all of it was read: what follows on the stream is another message, once Release was
  // called.
  bool done() const { return done_; }
  // Gives up the bytes of the last piece.
  void Release();
  // Reads what follows as bytes, not HTTP: all of them until the end of the connection.
  void SwitchProtocols();

 private:
  Task<Result<Piece>> ReadLater(Deadline deadline);
  Result<Piece> Take();
  Result<Piece> TakeChunk();
  void TakeFrame();

  Stream& stream_;
  codec::BodyFraming framing_;
  codec::ChunkedDecoder decoder_;
  uint64_t left_ = 0;  // The bytes left of kLength.
  size_t given_ = 0;   // Bytes at the front of the stream's buffer that the last piece borrows.
  bool malformed_ = false;  // True if the next Read must fail.
  bool done_ = false;
  bool cancelled_ = false;
};

// Puts one message on a stream. Small messages travel in one write, with head, body and end.
class Http1BodyWriter final : public BodyWriter {
 public:
  explicit Http1BodyWriter(Stream& stream) : stream_(stream) {}
  Http1BodyWriter(const Http1BodyWriter&) = delete;
  Http1BodyWriter& operator=(const Http1BodyWriter&) = delete;

  // Takes the head of the message, which may hold credentials. With kUntilClose the body is its
  // bare bytes, and Finish ends the connection's writing side.
  void Begin(std::string head, const codec::BodyFraming& framing);

  // Fail with kBug if the body is longer or shorter than a Content-Length said.
  Task<Status> Write(std::string_view bytes) override;
  Task<Status> Flush() override;
  Task<Status> Finish(const codec::HttpFields& trailers) override;

  // Announces that the stream's Linger follows Finish at once: the last bytes may wait for it, and
  // travel with the end of the connection.
  void LeaveEndToLinger() { lingers_ = true; }

  bool begun() const { return begun_; }
  // True once the message is complete and was given to the stream.
  bool finished() const { return finished_; }

 private:
  Task<Status> FlushLater(Task<Status> writing, bool finish);
  Task<Status> WriteLater(std::string_view bytes, bool chunked);
  void Finished(const Status& written);

  Stream& stream_;
  codec::BodyFraming framing_;
  uint64_t left_ = 0;
  SecretString held_;
  bool begun_ = false;
  bool finished_ = false;
  bool lingers_ = false;
};

}  // namespace gateway
