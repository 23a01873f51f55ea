// SPDX-License-Identifier: Apache-2.0
// The progress of an image's layers, for people: one line that is overwritten on a terminal, an
// occasional line in a CI log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "image/source/source.h"

namespace image {

// Give Update to SourceOptions::progress. For use from several threads.
class ProgressLines {
 public:
  struct Options {
    bool terminal = false;            // Lines are written over with "\r"; otherwise each is whole.
    std::string name;                 // The name of the image.
    std::function<int64_t()> now_ms;  // Steady milliseconds.
    std::function<void(std::string_view text)> write;  // Writes to standard error.
  };
  explicit ProgressLines(Options options);

  // Announces the layers that will come. Before this nothing is shown: configurations and
  // signatures are small.
  void Expect(const std::vector<Descriptor>& layers);
  // Updates the progress of a layer; a blob that was not expected is passed over.
  void Update(const BlobProgress& progress);
  // Writes the last line: how much came, and how long it took. Writes nothing if nothing came.
  void Finish();

 private:
  std::string Line(int64_t now_ms) const;

  const Options options_;
  const int64_t began_ms_;
  std::mutex mutex_;  // Guards everything below, and `write`.
  std::map<std::string, BlobProgress> layers_;
  int64_t written_ms_;
  size_t width_ = 0;  // The width of the line that stands on the terminal.
};

// Returns a size such as "546.0 MiB", "1.8 GiB" or "12 bytes".
std::string ShownBytes(int64_t bytes);

}  // namespace image
