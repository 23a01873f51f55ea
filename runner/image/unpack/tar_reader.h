// SPDX-License-Identifier: Apache-2.0
// Reads a tar archive strictly, one entry after the other: ustar, pax, and what GNU tar adds. An
// archive that readers are known to disagree about is refused: two readers that see different files
// in the same bytes are how malicious files pass a scanner (CVE-2025-62518).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace image {

inline constexpr size_t kTarPathBytesMax = 4096;
inline constexpr size_t kTarHeaderBytesMax = 1 << 20;  // The bytes of one extended header.
inline constexpr size_t kTarExtentsMax = 1 << 16;      // The extents of a sparse file.

enum class TarType { kFile, kHardlink, kSymlink, kDirectory, kFifo, kDevice };

struct TarEntry {
  TarType type = TarType::kFile;
  std::string path;  // The path as written: bytes, not text; never holds a NUL.
  std::string link;  // The target of kHardlink and kSymlink.
  int64_t size = 0;  // The size that the file will have: of a sparse file with its holes.
  bool sparse = false;
  int64_t holes = 0;  // The bytes of a sparse file that are not stored.
  uint32_t mode = 0;
  bool owned_by_root = true;  // User and group are both 0.
  int64_t mtime_s = 0;
  int64_t mtime_ns = 0;
  std::vector<std::pair<std::string, std::string>> xattrs;  // In the order of the archive.
};

// Some bytes of a file's content, and where they belong in it.
struct TarPiece {
  int64_t offset = 0;
  std::string_view bytes;  // Until the next call. Empty if there are no more.
};

class TarReader {
 public:
  // Gives the next bytes of the archive, valid until it is called again; empty at its end.
  using Input = std::function<Result<std::string_view>()>;

  explicit TarReader(Input input) : input_(std::move(input)) {}

  // Returns the next entry; what was left of the last one's content is passed over. Nothing at the
  // end of the archive, after which the input was read to its end too.
  Result<std::optional<TarEntry>> Next();

  // Returns the next piece of the content of the entry that Next() gave.
  Result<TarPiece> Read();

 private:
  struct Extent {
    int64_t offset;
    int64_t bytes;
  };
  struct Extended;  // The facts in extended headers about the entry that follows them.
  using Block = std::array<char, 512>;

  Result<size_t> Fill();
  // Returns false if the archive ends before its first byte.
  Result<bool> ReadBlock(Block& block);
  Result<std::string> ReadText(int64_t bytes, size_t bytes_max);
  Status SkipContent();
  Status Drain();
  Status ReadExtended(char type, int64_t size, Extended& extended);
  Status ParsePax(std::string_view records, Extended& extended);
  Status ParsePaxRecord(std::string_view key, std::string_view value, Extended& extended);
  Status ParseNames(const Block& block, const Extended& extended, TarEntry& entry);
  static Result<TarType> ParseType(char type, const std::string& path);
  Result<TarEntry> ParseEntry(const Block& block, Extended& extended);
  Status ReadGnuExtents(const Block& block);
  Status ReadPaxExtents();
  Status AddExtent(Extent extent);
  Status CheckExtents(int64_t size);

  Input input_;
  std::string_view chunk_;  // Bytes of the input that are not consumed yet.
  int64_t left_ = 0;        // Bytes of the current content that are stored and not read.
  int64_t padding_ = 0;     // Bytes after it, up to the next block.
  int64_t offset_ = 0;      // The place where the next piece belongs.
  bool sparse_ = false;
  std::vector<Extent> extents_;  // The extents of a sparse file.
  size_t extent_ = 0;
  bool ended_ = false;
};

}  // namespace image
