// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "codec/data/digest.h"

namespace session {

// A layer that is being packed into a file without a name.
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
  LayerFile(int directory, Fd file, std::string name);
  Status Pack(std::string_view bytes, bool last);

  int directory_;
  Fd file_;
  std::string name_;  // While it is written; begins with a dot.
  std::unique_ptr<Packer> packer_;
  codec::Sha256 packed_;
  codec::Sha256 unpacked_;
  std::string digest_;
  std::string diff_id_;
  int64_t bytes_ = 0;
};

}  // namespace session
