// SPDX-License-Identifier: Apache-2.0
#include "change/rules/index_paths.h"

#include <cstddef>
#include <cstdint>

namespace change {
namespace {

constexpr size_t kPathsMax = 1'000'000;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kFactsBytes = 60;  // Of an entry, before its flags: times, ids, mode, size, blob.

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  // Returns false at the end.
  bool Skip(size_t count) {
    if (count > rest_.size()) return false;
    rest_.remove_prefix(count);
    return true;
  }
  bool Number(size_t size, uint32_t* value) {
    if (size > rest_.size()) return false;
    *value = 0;
    for (size_t i = 0; i < size; ++i) *value = *value << 8 | static_cast<uint8_t>(rest_[i]);
    return Skip(size);
  }
  // How many bytes of the path before are not in the next (version 4); an offset of a pack's kind.
  bool Offset(size_t* value) {
    for (*value = 0; !rest_.empty() && *value <= kPathBytesMax; ++*value) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value = *value << 7 | (byte & 0x7f);
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }
  bool Text(std::string_view* text) {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos || end > kPathBytesMax) return false;
    *text = rest_.substr(0, end);
    return Skip(end + 1);
  }
  // An id of 20 bytes, in hexadecimal digits; empty at the end.
  std::string Name() {
    constexpr size_t kBytes = 20;
    std::string name;
    for (size_t i = 0; i < kBytes && rest_.size() >= kBytes; ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      for (const int digit : {byte >> 4, byte & 0xf}) name += "0123456789abcdef"[digit];
    }
    return name;
  }

 private:
  std::string_view rest_;
};

// Reads one entry's path, which in version 4 begins as the one before, in `path`.
bool ReadEntry(Reader* reader, uint32_t version, std::string* path) {
  constexpr uint32_t kExtended = 0x4000;
  uint32_t flags = 0;
  if (!reader->Skip(kFactsBytes) || !reader->Number(2, &flags)) return false;
  const size_t more = version > 2 && (flags & kExtended) != 0 ? 2 : 0;
  if (!reader->Skip(more)) return false;
  std::string_view text;
  if (version == 4) {
    size_t dropped = 0;
    if (!reader->Offset(&dropped) || dropped > path->size() || !reader->Text(&text)) return false;
    path->resize(path->size() - dropped);
    path->append(text);
    return path->size() <= kPathBytesMax;
  }
  if (!reader->Text(&text)) return false;
  *path = text;
  // Zero bytes fill it up to a multiple of eight; one of them has been read.
  const size_t size = kFactsBytes + 2 + more + text.size();
  return reader->Skip(7 - size % 8);
}

}  // namespace

IndexPaths ReadIndexPaths(std::string_view bytes) {
  constexpr std::string_view kSignature = "DIRC";
  constexpr uint32_t kLink = 0x6c696e6b;  // "link"
  IndexPaths index;
  Reader reader(bytes);
  uint32_t version = 0;
  uint32_t count = 0;
  if (!bytes.starts_with(kSignature) || !reader.Skip(kSignature.size()) ||
      !reader.Number(4, &version) || !reader.Number(4, &count) || version < 2 || version > 4) {
    return index;
  }
  std::string path;
  for (; count > 0; --count) {
    if (index.paths.size() >= kPathsMax || !ReadEntry(&reader, version, &path)) return index;
    index.paths.insert(index.paths.end(), path);
  }
  uint32_t kind = 0;
  uint32_t size = 0;
  while (reader.Number(4, &kind) && reader.Number(4, &size)) {
    if (kind == kLink) {
      index.shared = reader.Name();
      break;
    }
    if (!reader.Skip(size)) break;
  }
  return index;
}

}  // namespace change
