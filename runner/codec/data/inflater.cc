// SPDX-License-Identifier: Apache-2.0
#include "codec/data/inflater.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/result.h"

namespace codec {
namespace {

constexpr size_t kStepBytesMax = std::numeric_limits<uInt>::max();

}  // namespace

Inflater::Inflater(Format format) : stream_(std::make_unique<z_stream>()) {
  constexpr int kByHeader = 32;  // zlib's word for "zlib or gzip".
  int bits = format == Format::kRaw ? -MAX_WBITS : MAX_WBITS + kByHeader;
  ENSURE(::inflateInit2(stream_.get(), bits) == Z_OK);
}

Inflater::~Inflater() { ::inflateEnd(stream_.get()); }

Inflater::Progress Inflater::Inflate(std::string_view& in, char* out, size_t size, size_t& got) {
  size_t offered = std::min(in.size(), kStepBytesMax);
  size_t room = std::min(size, kStepBytesMax);
  // zlib promises not to write through next_in; its type has no const.
  stream_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  stream_->avail_in = static_cast<uInt>(offered);
  stream_->next_out = reinterpret_cast<Bytef*>(out);
  stream_->avail_out = static_cast<uInt>(room);
  int result = ::inflate(stream_.get(), Z_SYNC_FLUSH);
  in.remove_prefix(offered - stream_->avail_in);
  got = room - stream_->avail_out;
  if (result == Z_STREAM_END) return Progress::kEnded;
  return result == Z_OK || result == Z_BUF_ERROR ? Progress::kMore : Progress::kBad;
}

}  // namespace codec
