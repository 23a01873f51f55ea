// SPDX-License-Identifier: Apache-2.0
#include "codec/wire/chunked_body.h"

#include <algorithm>
#include <charconv>

namespace codec {
namespace {

// The line at the start of `in` without its CRLF; `complete` is false while it has not ended.
struct Line {
  std::string_view text;
  bool complete = false;
};

Result<Line> ScanLine(std::string_view in) {
  size_t end = in.find_first_of("\r\n");
  if (end == std::string_view::npos || end + 1 >= in.size()) {
    if (end != std::string_view::npos && in[end] == '\n') return Invalid("bare LF in a chunk");
    if (in.size() > ChunkedDecoder::kLineBytesMax) return Invalid("chunk line too long");
    return Line{};
  }
  if (in[end] != '\r' || in[end + 1] != '\n') return Invalid("chunk line without CRLF");
  if (end > ChunkedDecoder::kLineBytesMax) return Invalid("chunk line too long");
  return Line{in.substr(0, end), true};
}

}  // namespace

Result<ChunkedDecoder::Piece> ChunkedDecoder::NextSize(std::string_view in) {
  Line line = TRY(ScanLine(in));
  if (!line.complete) return Piece{};
  // 15 digits are below 2^60: no sum of sizes that we keep can overflow.
  size_t digits = std::min(line.text.find(';'), line.text.size());
  std::string_view size = line.text.substr(0, digits);
  auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), left_, 16);
  if (size.empty() || size.size() > 15 || size.front() == '-' || error != std::errc() ||
      end != size.data() + size.size()) {
    return Invalid("invalid chunk size");
  }
  expect_ = left_ == 0 ? Expect::kTrailer : Expect::kData;
  return Piece{line.text.size() + 2, {}, false};
}

Result<ChunkedDecoder::Piece> ChunkedDecoder::NextTrailer(std::string_view in) {
  Line line = TRY(ScanLine(in));
  if (!line.complete) return Piece{};
  trailer_lines_.append(line.text).append("\r\n");
  if (trailer_lines_.size() > kTrailerBytesMax) return Invalid("trailers too long");
  bool finished = line.text.empty();
  if (finished) {
    trailers_ = TRY(ParseTrailers(trailer_lines_));
    expect_ = Expect::kNothing;
  }
  return Piece{line.text.size() + 2, {}, finished};
}

Result<ChunkedDecoder::Piece> ChunkedDecoder::Next(std::string_view in) {
  switch (expect_) {
    case Expect::kSize:
      return NextSize(in);
    case Expect::kData: {
      size_t size = static_cast<size_t>(std::min<uint64_t>(left_, in.size()));
      left_ -= size;
      if (left_ == 0) expect_ = Expect::kDataEnd;
      return Piece{size, in.substr(0, size), false};
    }
    case Expect::kDataEnd:
      if (in.size() < 2) return Piece{};
      if (in.substr(0, 2) != "\r\n") return Invalid("chunk longer than its size");
      expect_ = Expect::kSize;
      return Piece{2, {}, false};
    case Expect::kTrailer:
      return NextTrailer(in);
    case Expect::kNothing:
      break;
  }
  return Piece{0, {}, true};
}

std::string RenderLastChunk(const HttpFields& trailers) {
  std::string out = "0\r\n";
  for (const HttpField& field : trailers) {
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  out += "\r\n";
  return out;
}

std::string RenderChunkHead(size_t size) {
  char digits[16];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, size, 16);
  ENSURE(error == std::errc() && size > 0);
  return std::string(digits, end) + "\r\n";
}

}  // namespace codec
