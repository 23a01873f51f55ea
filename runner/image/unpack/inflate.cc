// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/inflate.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/free_with.h"

namespace image {
namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr uint32_t kZstdMagic = 0xFD2FB528;
constexpr uint32_t kZstdSkippable = 0x184D2A50;  // Its last four bits are anybody's.

bool IsZstd(std::string_view start) {
  uint32_t magic = 0;
  if (start.size() < sizeof magic) return false;
  for (size_t i = sizeof magic; i-- > 0;) magic = magic << 8 | static_cast<uint8_t>(start[i]);
  return magic == kZstdMagic || (magic & 0xFFFFFFF0) == kZstdSkippable;
}

// A frame's first byte, or a skippable one's. zstd as Debian builds it would take frames of its old
// formats, too, whose first bytes are others: decoders that have not been maintained for years.
bool StartsFrame(char first) {
  auto byte = static_cast<uint8_t>(first);
  return byte == (kZstdMagic & 0xFF) || (byte & 0xF0) == (kZstdSkippable & 0xF0);
}

class Plain : public Inflater {
 public:
  explicit Plain(Input input) : Inflater(std::move(input)) {}

  Result<size_t> Read(std::span<char> out) override {
    bool more = TRY(Fill());
    if (!more) return size_t{0};
    size_t take = chunk_.copy(out.data(), out.size());
    chunk_.remove_prefix(take);
    return take;
  }
};

class Gzip : public Inflater {
 public:
  explicit Gzip(Input input) : Inflater(std::move(input)) {
    ENSURE(::inflateInit2(&stream_, 15 + 16) == Z_OK);  // The largest window; gzip's header alone.
  }
  ~Gzip() override { ::inflateEnd(&stream_); }

  Result<size_t> Read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out == out.size()) {
      bool more = TRY(Fill());
      if (!more && between_) return size_t{0};
      if (!more) return Error{Code::kInvalid, "gzip: ends too early"};
      if (between_) TRY(NextMember());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(chunk_.data()));
      stream_.avail_in = static_cast<uInt>(chunk_.size());
      int rc = ::inflate(&stream_, Z_NO_FLUSH);
      chunk_.remove_prefix(chunk_.size() - stream_.avail_in);
      if (rc == Z_STREAM_END) between_ = true;
      if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
        const char* why = stream_.msg != nullptr ? stream_.msg : "broken";
        return Error{Code::kInvalid, std::string("gzip: ") + why};
      }
    }
    return out.size() - stream_.avail_out;
  }

 private:
  // Zeros may fill a file up behind its last member, as tapes did.
  Status NextMember() {
    while (!chunk_.empty() && chunk_[0] == '\0') {
      padded_ = true;
      chunk_.remove_prefix(1);
    }
    if (chunk_.empty()) return Ok();
    if (padded_) return Error{Code::kInvalid, "gzip: trailing garbage"};
    ENSURE(::inflateReset(&stream_) == Z_OK);
    between_ = false;
    return Ok();
  }

  z_stream stream_{};
  bool between_ = false;  // A member ended, and no other began.
  bool padded_ = false;
};

class Zstd : public Inflater {
 public:
  explicit Zstd(Input input) : Inflater(std::move(input)), stream_(::ZSTD_createDStream()) {
    ENSURE(stream_ != nullptr);
    ENSURE(::ZSTD_isError(::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax,
                                                   kZstdWindowLogMax)) == 0);
  }

  Result<size_t> Read(std::span<char> out) override {
    ZSTD_outBuffer unpacked{out.data(), out.size(), 0};
    while (unpacked.pos == 0) {
      // Bytes for which the last call had no room come out without further input.
      bool more = TRY(Fill());
      if (more && between_ && !StartsFrame(chunk_[0])) {
        return Error{Code::kInvalid, "zstd: garbage between its frames"};
      }
      // A frame's first byte by itself: the library takes a frame that is there in one piece
      // another way, which refuses some that it takes when they come in parts.
      ZSTD_inBuffer packed{chunk_.data(),
                           between_ ? std::min<size_t>(chunk_.size(), 1) : chunk_.size(), 0};
      size_t rc = ::ZSTD_decompressStream(stream_.get(), &unpacked, &packed);
      if (::ZSTD_isError(rc) != 0) {
        return Error{Code::kInvalid, std::string("zstd: ") + ::ZSTD_getErrorName(rc)};
      }
      frame_start_.append(
          chunk_.substr(0, std::min(packed.pos, kFrameStart - frame_start_.size())));
      frame_bytes_ += unpacked.pos;
      chunk_.remove_prefix(packed.pos);
      if (!more && unpacked.pos == 0) {
        if (between_) return size_t{0};
        return Error{Code::kInvalid, "zstd: ends too early"};
      }
      between_ = rc == 0;
      if (between_) TRY(EndFrame());
    }
    return unpacked.pos;
  }

 private:
  static constexpr size_t kFrameStart = 18;  // The longest header of a frame (RFC 8878, 3.1.1.1).

  // The library compares what a frame says of its size with what it holds in some of its ways
  // through it, so whether an image is taken would depend on how its bytes happen to come.
  Status EndFrame() {
    unsigned long long said = ::ZSTD_getFrameContentSize(frame_start_.data(), frame_start_.size());
    bool known = said != ZSTD_CONTENTSIZE_UNKNOWN && said != ZSTD_CONTENTSIZE_ERROR;
    if (known && said != frame_bytes_) {
      return Error{Code::kInvalid, "zstd: a frame's size differs from its header"};
    }
    frame_start_.clear();
    frame_bytes_ = 0;
    return Ok();
  }

  std::unique_ptr<ZSTD_DStream, FreeWith<ZSTD_freeDStream>> stream_;
  bool between_ = true;  // A frame ended, and no other began.
  std::string frame_start_;
  uint64_t frame_bytes_ = 0;  // Unpacked.
};

}  // namespace

Result<bool> Inflater::Fill() {
  if (!chunk_.empty()) return true;
  chunk_ = TRY(input_());
  packed_bytes_ += static_cast<int64_t>(chunk_.size());
  return !chunk_.empty();
}

Result<std::unique_ptr<Inflater>> Inflater::Open(Input input) {
  // Enough to tell, put before the rest.
  std::string start;
  while (start.size() < 4) {
    std::string_view chunk = TRY(input());
    if (chunk.empty()) break;
    start += chunk;
  }
  bool gzip = start.starts_with(kGzipMagic);
  bool zstd = IsZstd(start);
  Input whole = [start = std::move(start), input = std::move(input),
                 given = false]() mutable -> Result<std::string_view> {
    if (given) return input();
    given = true;
    return start.empty() ? input() : Result<std::string_view>(start);
  };
  if (gzip) return std::unique_ptr<Inflater>(std::make_unique<Gzip>(std::move(whole)));
  if (zstd) return std::unique_ptr<Inflater>(std::make_unique<Zstd>(std::move(whole)));
  return std::unique_ptr<Inflater>(std::make_unique<Plain>(std::move(whole)));
}

}  // namespace image
