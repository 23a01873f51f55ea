// SPDX-License-Identifier: Apache-2.0
// Writes the layer of a snapshot: packs it as it arrives, computes its digests, and publishes it
// under its name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/data/digest.h"
#include "session/snapshot/part_file.h"

namespace session {

// A layer that is being packed into a file that has no name yet.
class LayerFile {
 public:
  // Opens a file in `directory`, borrowed. It has no name before Publish().
  static Result<LayerFile> Open(int directory);
  LayerFile(LayerFile&&) noexcept;
  LayerFile& operator=(LayerFile&&) = delete;
  ~LayerFile();

  Status Take(std::string_view bytes);
  // Packs what is left. Then, and only then, what follows.
  Status Finish();
  const std::string& digest() const { return digest_; }    // As packed: "sha256:...",
  const std::string& diff_id() const { return diff_id_; }  // and as it came.
  int64_t bytes() const { return bytes_; }                 // As packed.
  // Gives the file the name of its digest; one that is there is the same.
  Status Publish();

 private:
  struct Packer;
  explicit LayerFile(PartFile file);
  Status Pack(std::string_view bytes, bool last);

  PartFile file_;
  std::unique_ptr<Packer> packer_;
  codec::Sha256 packed_;
  codec::Sha256 unpacked_;
  std::string digest_;
  std::string diff_id_;
  int64_t bytes_ = 0;
};

}  // namespace session
