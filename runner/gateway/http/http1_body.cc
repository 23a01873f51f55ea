// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/http1_body.h"

#include <algorithm>

namespace gateway {
namespace {

// The bound on what is copied to travel with what comes before and behind it.
constexpr size_t kHeldBytesMax = 8192;

}  // namespace

Http1BodyReader::Http1BodyReader(Stream& stream, const codec::BodyFraming& framing)
    : stream_(stream), framing_(framing), left_(framing.length) {
  done_ = framing.kind == codec::BodyFraming::kNone ||
          (framing.kind == codec::BodyFraming::kLength && left_ == 0);
  if (framing.kind == codec::BodyFraming::kChunked) TakeFrame();
}

void Http1BodyReader::Release() { stream_.Consume(std::exchange(given_, 0)); }

void Http1BodyReader::Cancel() {
  cancelled_ = true;
  stream_.AbortReading();
}

void Http1BodyReader::SwitchProtocols() {
  Release();
  framing_ = codec::BodyFraming{codec::BodyFraming::kUntilClose, 0};
  done_ = false;
}

// The next piece of what is buffered, which is not empty; an empty piece that is not the end: more
// bytes are needed.
Result<BodyReader::Piece> Http1BodyReader::Take() {
  std::string_view in = stream_.buffered();
  if (framing_.kind == codec::BodyFraming::kUntilClose) {
    given_ = in.size();
    return Piece{in, false};
  }
  if (framing_.kind == codec::BodyFraming::kLength) {
    given_ = static_cast<size_t>(std::min<uint64_t>(left_, in.size()));
    left_ -= given_;
    done_ = left_ == 0;
    return Piece{in.substr(0, given_), done_};
  }
  return TakeChunk();
}

Result<BodyReader::Piece> Http1BodyReader::TakeChunk() {
  for (;;) {
    codec::ChunkedDecoder::Piece piece = TRY(decoder_.Next(stream_.buffered()));
    done_ = piece.finished;
    if (!piece.data.empty()) {
      given_ = piece.consumed;
      TakeFrame();
      return Piece{piece.data, done_};
    }
    stream_.Consume(piece.consumed);
    if (done_ || piece.consumed == 0) return Piece{{}, done_};
  }
}

// The framing of the next bytes is read ahead of them: without it, it is not known whether there
// are any.
void Http1BodyReader::TakeFrame() {
  while (!done_ && !decoder_.expects_data()) {
    Result<codec::ChunkedDecoder::Piece> frame = decoder_.Next(stream_.buffered().substr(given_));
    malformed_ = !frame.ok();
    if (malformed_ || frame.value().consumed == 0) return;
    given_ += frame.value().consumed;
    done_ = frame.value().finished;
  }
}

bool Http1BodyReader::ready() const {
  if (done_ || malformed_) return true;
  bool chunked = framing_.kind == codec::BodyFraming::kChunked;
  return stream_.buffered().size() > given_ && (!chunked || decoder_.expects_data());
}

Task<Result<BodyReader::Piece>> Http1BodyReader::Read(Deadline deadline) {
  Release();
  if (done_) return Result<Piece>(Piece{{}, true});
  if (!cancelled_ && !stream_.buffered().empty()) {
    Result<Piece> piece = Take();
    if (!piece.ok() || piece.value().end || !piece.value().bytes.empty()) return piece;
  }
  return ReadLater(deadline);
}

Task<Result<BodyReader::Piece>> Http1BodyReader::ReadLater(Deadline deadline) {
  const Error unwanted{Code::kIo, "the rest of the body is not needed"};
  for (;;) {
    if (cancelled_) co_return unwanted;
    Result<size_t> read = co_await stream_.Fill(deadline);
    if (cancelled_) co_return unwanted;  // Bytes that had arrived by then wake a reader, too.
    if (!read.ok()) co_return std::move(read).error();
    if (read.value() == 0) {
      done_ = framing_.kind == codec::BodyFraming::kUntilClose;
      if (done_) co_return Piece{{}, true};
      co_return Error{Code::kIo, "connection closed in the middle of a body"};
    }
    Result<Piece> piece = Take();
    if (!piece.ok() || piece.value().end || !piece.value().bytes.empty()) co_return piece;
  }
}

void Http1BodyWriter::Begin(std::string head, const codec::BodyFraming& framing) {
  ENSURE(held_.empty());
  held_ = std::move(head);
  framing_ = framing;
  left_ = framing.length;
  begun_ = true;
}

Task<Status> Http1BodyWriter::Flush() {
  if (held_.empty()) return Ok();
  Task<Status> written = stream_.Write(held_);
  if (!written.ready()) return FlushLater(std::move(written), false);
  Wipe(held_);
  return written;
}

Task<Status> Http1BodyWriter::FlushLater(Task<Status> writing, bool finish) {
  Status written = co_await writing;
  Wipe(held_);
  if (finish) Finished(written);
  co_return written;
}

Task<Status> Http1BodyWriter::Write(std::string_view bytes) {
  if (bytes.empty()) return Ok();
  bool chunked = framing_.kind == codec::BodyFraming::kChunked;
  if (framing_.kind == codec::BodyFraming::kNone ||
      (framing_.kind == codec::BodyFraming::kLength && bytes.size() > left_)) {
    return Status(Error{Code::kBug, "the body is longer than its head declared"});
  }
  if (framing_.kind == codec::BodyFraming::kLength) left_ -= bytes.size();
  if (chunked) held_ += codec::RenderChunkHead(bytes.size());
  if (held_.size() + bytes.size() <= kHeldBytesMax) {
    held_.append(bytes);
    if (chunked) held_ += "\r\n";
    return Ok();
  }
  return WriteLater(bytes, chunked);
}

Task<Status> Http1BodyWriter::WriteLater(std::string_view bytes, bool chunked) {
  Status written = Ok();
  if (!held_.empty()) {
    written = co_await stream_.Write(held_, true);
    Wipe(held_);
  }
  if (written.ok()) written = co_await stream_.Write(bytes, chunked);
  if (chunked) held_ += "\r\n";
  co_return written;
}

Task<Status> Http1BodyWriter::Finish(const codec::HttpFields& trailers) {
  if (framing_.kind == codec::BodyFraming::kLength && left_ > 0) {
    return Status(Error{Code::kBug, "the body is shorter than its head declared"});
  }
  if (framing_.kind == codec::BodyFraming::kChunked) held_ += codec::RenderLastChunk(trailers);
  if (!held_.empty()) {
    bool wait = lingers_ && framing_.kind != codec::BodyFraming::kUntilClose;
    Task<Status> writing = stream_.Write(held_, wait);
    if (!writing.ready()) return FlushLater(std::move(writing), true);
    Wipe(held_);
    Status written = writing.Take();
    Finished(written);
    return written;
  }
  Finished(Ok());
  return Ok();
}

void Http1BodyWriter::Finished(const Status& written) {
  finished_ = written.ok();
  if (framing_.kind == codec::BodyFraming::kUntilClose && finished_) stream_.FinishWriting();
}

}  // namespace gateway
