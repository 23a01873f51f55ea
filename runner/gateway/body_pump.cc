// SPDX-License-Identifier: Apache-2.0
#include "gateway/body_pump.h"

#include <algorithm>

#include "codec/chunked_body.h"

namespace gateway {
namespace {

Deadline IdleDeadline(milliseconds idle) {
  return idle.count() == 0 ? Deadline::Never() : Deadline::After(idle);
}

BodyOutcome SourceFailed(std::string why) { return {BodyOutcome::kSourceFailed, std::move(why)}; }

Task<BodyOutcome> PumpLength(Stream& from, Stream& to, BodyPlan plan) {
  BodyOutcome outcome;
  uint64_t left = plan.framing.length;
  while (left > 0) {
    if (from.buffered().empty()) {
      Result<size_t> read = co_await from.Fill(IdleDeadline(plan.idle));
      if (!read.ok()) co_return SourceFailed(read.error().what);
      if (read.value() == 0) co_return SourceFailed("connection closed in the middle of a body");
    }
    std::string_view piece = from.buffered();
    piece = piece.substr(0, static_cast<size_t>(std::min<uint64_t>(left, piece.size())));
    Status written = co_await to.Write(piece);
    if (!written.ok()) co_return BodyOutcome{BodyOutcome::kSinkFailed, written.error().what};
    left -= piece.size();
    from.Consume(piece.size());
  }
  co_return outcome;
}

Task<Status> WriteChunk(Stream& to, std::string_view data, bool rechunk) {
  if (data.empty()) co_return Ok();
  if (!rechunk) co_return co_await to.Write(data);
  std::string chunk = codec::RenderChunkHead(data.size());
  chunk.append(data).append("\r\n");
  co_return co_await to.Write(chunk);
}

Task<BodyOutcome> PumpChunked(Stream& from, Stream& to, BodyPlan plan) {
  codec::ChunkedDecoder decoder;
  for (;;) {
    Result<codec::ChunkedDecoder::Piece> piece = decoder.Next(from.buffered());
    if (!piece.ok()) co_return BodyOutcome{BodyOutcome::kMalformed, piece.error().what};
    std::string_view data = piece.value().data;
    Status written = co_await WriteChunk(to, data, plan.rechunk);
    if (!written.ok()) co_return BodyOutcome{BodyOutcome::kSinkFailed, written.error().what};
    from.Consume(piece.value().consumed);
    if (piece.value().finished) break;
    if (piece.value().consumed > 0 && !from.buffered().empty()) continue;
    Result<size_t> read = co_await from.Fill(IdleDeadline(plan.idle));
    if (!read.ok()) co_return SourceFailed(read.error().what);
    if (read.value() == 0) co_return SourceFailed("connection closed in the middle of a body");
  }
  if (plan.rechunk) {
    Status written = co_await to.Write(codec::kLastChunk);
    if (!written.ok()) co_return BodyOutcome{BodyOutcome::kSinkFailed, written.error().what};
  }
  BodyOutcome outcome;
  co_return outcome;
}

Task<BodyOutcome> PumpUntilClose(Stream& from, Stream& to, BodyPlan plan) {
  BodyOutcome outcome;
  for (;;) {
    if (from.buffered().empty()) {
      Result<size_t> read = co_await from.Fill(IdleDeadline(plan.idle));
      if (!read.ok() && read.error().code == Code::kTemporary) co_return outcome;
      if (!read.ok()) co_return SourceFailed(read.error().what);
      if (read.value() == 0) co_return outcome;
    }
    std::string_view piece = from.buffered();
    Status written = co_await to.Write(piece);
    if (!written.ok()) co_return BodyOutcome{BodyOutcome::kSinkFailed, written.error().what};
    from.Consume(piece.size());
  }
}

}  // namespace

Task<BodyOutcome> PumpBody(Stream& from, Stream& to, BodyPlan plan) {
  switch (plan.framing.kind) {
    case codec::BodyFraming::kNone:
      break;
    case codec::BodyFraming::kLength:
      co_return co_await PumpLength(from, to, plan);
    case codec::BodyFraming::kChunked:
      co_return co_await PumpChunked(from, to, plan);
    case codec::BodyFraming::kUntilClose:
      co_return co_await PumpUntilClose(from, to, plan);
  }
  BodyOutcome outcome;
  co_return outcome;
}

}  // namespace gateway
