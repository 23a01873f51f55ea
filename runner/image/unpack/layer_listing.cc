// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/layer_listing.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <unordered_set>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"
#include "codec/data/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace image {

struct ContentHash::State {
  XXH3_state_t xxh3;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_INITSTATE(&state_->xxh3);
  (void)Take();
}

ContentHash::~ContentHash() = default;

void ContentHash::Update(std::string_view bytes) {
  ENSURE(XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size()) == XXH_OK);
}

uint64_t ContentHash::Take() {
  uint64_t value = XXH3_64bits_digest(&state_->xxh3);
  ENSURE(XXH3_64bits_reset(&state_->xxh3) == XXH_OK);
  return value;
}

Result<uint64_t> HashContent(int fd) {
  constexpr size_t kChunk = 256 << 10;
  std::string chunk(kChunk, '\0');
  std::string zeros(kChunk, '\0');
  ContentHash hash;
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Errno("fstat");
  for (off_t at = 0; at < st.st_size;) {
    // The zeros of a hole are hashed and not read.
    off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return Errno("lseek");
    if (data < 0 || data > st.st_size) data = st.st_size;
    while (at < data) {
      auto length = static_cast<size_t>(std::min(data - at, static_cast<off_t>(kChunk)));
      hash.Update(std::string_view(zeros).substr(0, length));
      at += static_cast<off_t>(length);
    }
    off_t hole = at < st.st_size ? ::lseek(fd, at, SEEK_HOLE) : at;
    if (hole < 0) return Errno("lseek");
    while (at < hole) {
      auto length = static_cast<size_t>(std::min(hole - at, static_cast<off_t>(kChunk)));
      ssize_t n = ::pread(fd, chunk.data(), length, at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Errno("read");
      if (n == 0) return hash.Take();  // Cut short while it was read.
      hash.Update(std::string_view(chunk).substr(0, static_cast<size_t>(n)));
      at += n;
    }
  }
  return hash.Take();
}

namespace {

class Walk {
 public:
  explicit Walk(const ContentHashes* known) : known_(known) {}

  Status Directory(int directory, const struct stat& st, const std::string& path) {
    // The one attribute that changes what shows of other files.
    char mark = 0;
    bool marked = ::fgetxattr(directory, kOpaqueXattr, &mark, 1) == 1;
    Line(path, st, std::string_view(&mark, marked ? 1 : 0));
    std::vector<std::string> names = TRY(sys::DirectoryNames(directory));
    for (const std::string& name : names) TRY(Entry(directory, name, path + "/" + name));
    return Ok();
  }

  LayerListing Finish() {
    listing_.digest = digest_.Hex();
    return std::move(listing_);
  }

 private:
  // Directories are at most kLayerDepthMax deep, so this is as well.
  Status Entry(int directory, const std::string& name, const std::string& path) {
    struct stat st {};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return Errno(path);
    if (S_ISDIR(st.st_mode)) {
      Fd fd = TRY(sys::OpenAt(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      return Directory(fd.get(), st, path);
    }
    if (S_ISLNK(st.st_mode)) {
      char target[PATH_MAX];
      ssize_t n = ::readlinkat(directory, name.c_str(), target, sizeof target);
      if (n < 0) return Errno(path);
      Line(path, st, std::string_view(target, static_cast<size_t>(n)));
      return Ok();
    }
    std::string content;
    if (S_ISREG(st.st_mode)) {
      if (st.st_nlink == 1 || counted_.insert(st.st_ino).second) listing_.bytes += st.st_size;
      uint64_t hash = TRY(Content(directory, name, st));
      content = std::to_string(hash);
    }
    Line(path, st, content);
    return Ok();
  }

  Result<uint64_t> Content(int directory, const std::string& name, const struct stat& st) {
    if (st.st_size == 0) return uint64_t{0};
    const ContentHashes& hashes = known_ != nullptr ? *known_ : hashes_;
    auto found = hashes.find(st.st_ino);
    if (found != hashes.end()) return found->second;
    Fd fd = TRY(sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW));
    uint64_t hash = TRY(HashContent(fd.get()));
    if (st.st_nlink > 1) hashes_[st.st_ino] = hash;
    return hash;
  }

  // Names and links cannot hold a NUL.
  void Line(const std::string& path, const struct stat& st, std::string_view what) {
    bool directory = S_ISDIR(st.st_mode);
    line_ = path;
    line_ += '\0';
    for (int64_t number :
         {static_cast<int64_t>(st.st_mode), static_cast<int64_t>(st.st_mtim.tv_sec),
          static_cast<int64_t>(st.st_mtim.tv_nsec),
          directory ? 0 : static_cast<int64_t>(st.st_size),
          directory ? 0 : static_cast<int64_t>(st.st_nlink)}) {
      line_ += std::to_string(number);
      line_ += ' ';
    }
    line_ += what;
    line_ += '\0';
    digest_.Update(line_);
    ++listing_.entries;
  }

  const ContentHashes* known_;
  ContentHashes hashes_;
  std::unordered_set<ino_t> counted_;  // The inodes of files with several names.
  codec::Sha256 digest_;
  LayerListing listing_;
  std::string line_;
};

}  // namespace

Result<LayerListing> ListLayer(int root, const ContentHashes* known) {
  struct stat st {};
  if (::fstat(root, &st) != 0) return Errno("fstat");
  Walk walk(known);
  TRY(walk.Directory(root, st, ""));
  return walk.Finish();
}

}  // namespace image
