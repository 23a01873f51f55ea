// SPDX-License-Identifier: Apache-2.0
// Writes tar archives that image/unpack/tar_reader.h and other tools read: ustar, with extended
// headers (pax) for what does not fit into one, times to the nanosecond and extended attributes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "image/unpack/tar_reader.h"

namespace session {

class TarWriter {
 public:
  using Output = std::function<Status(std::string_view bytes)>;

  // Every entry belongs to user and group `owner`.
  TarWriter(Output output, int owner) : output_(std::move(output)), owner_(owner) {}

  // Begins an entry. Content() follows for just `entry.size` bytes, if that is not 0. Sparse files
  // are written whole.
  Status Begin(const image::TarEntry& entry);
  Status Content(std::string_view bytes);
  // Writes the end of the archive.
  Status Finish();

 private:
  Status Put(std::string_view bytes);
  Status PutHeader(const image::TarEntry& entry, char type, const std::string& path,
                   const std::string& link);

  Output output_;
  int owner_;
  std::string buffer_;
  int64_t size_ = 0;  // The size of the entry's content,
  int64_t left_ = 0;  // and the part of it that is still to come.
};

}  // namespace session
