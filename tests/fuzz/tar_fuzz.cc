// SPDX-License-Identifier: Apache-2.0
// Layers: how the bytes are split changes nothing that is read, and whatever they say, nothing
// outside of the layer's directory is touched and the directory can be removed again.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/sys.h"
#include "base/tree.h"
#include "image/unpack/layer_stack.h"
#include "image/unpack/layer_writer.h"

namespace {

constexpr size_t kBlock = 512;

// A checksum that fits, in every block that looks like a header: mutations get past it.
std::string WithChecksums(std::string tar) {
  for (size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[at + i]);
    }
    char digits[9];
    std::snprintf(digits, sizeof digits, "%06o", sum & 0777777);
    tar.replace(at + 148, 8, std::string(digits) + std::string(1, '\0') + " ");
  }
  return tar;
}

image::TarReader::Input InSteps(std::string_view tar, size_t step) {
  return [tar, step]() mutable -> Result<std::string_view> {
    std::string_view next = tar.substr(0, step);
    tar.remove_prefix(next.size());
    return next;
  };
}

// All that a reader sees, as text.
std::string Listing(std::string_view tar, size_t step) {
  image::TarReader reader(InSteps(tar, step));
  std::string text;
  for (;;) {
    Result<std::optional<image::TarEntry>> entry = reader.Next();
    if (!entry.ok()) return text + "error " + entry.error().what;
    if (!entry.value()) return text;
    const image::TarEntry& seen = *entry.value();
    text += seen.path + '>' + seen.link + ' ' + std::to_string(static_cast<int>(seen.type)) + ' ' +
            std::to_string(seen.size) + ' ' + std::to_string(seen.mode) + ' ' +
            std::to_string(seen.mtime_s) + ' ' + std::to_string(seen.xattrs.size()) + '\n';
    int64_t end = 0;
    for (;;) {
      Result<image::TarPiece> piece = reader.Read();
      if (!piece.ok()) return text + "error " + piece.error().what;
      if (piece.value().bytes.empty()) break;
      ENSURE(piece.value().offset >= end);
      end = piece.value().offset + static_cast<int64_t>(piece.value().bytes.size());
      ENSURE(end <= seen.size);
      text += piece.value().bytes;
    }
  }
}

struct Site {
  std::string top;
  Fd fd;
  struct stat canary {};
};

struct stat Canary(int top) {
  struct stat st {};
  ENSURE(::fstatat(top, "canary", &st, AT_SYMLINK_NOFOLLOW) == 0);
  return st;
}

// A lower layer to reach into, and a file that must not be reached. One for the process, kept on a
// memory file system where there is one.
Site MakeSite() {
  ::umask(0);
  std::string top = sys::Exists("/dev/shm") ? "/dev/shm/tar-fuzz-XXXXXX" : "/tmp/tar-fuzz-XXXXXX";
  ENSURE(::mkdtemp(top.data()) != nullptr);
  Site site{top, {}, {}};
  ENSURE(sys::MakeDirectories(top + "/lower/usr/bin").ok());
  ENSURE(sys::WriteFile(top + "/lower/usr/bin/a", "lower").ok());
  ENSURE(::symlink("usr/bin", (top + "/lower/bin").c_str()) == 0);
  ENSURE(::symlink(top.c_str(), (top + "/lower/out").c_str()) == 0);
  ENSURE(sys::WriteFile(top + "/canary", "canary").ok());
  Result<Fd> fd = sys::Open(top, O_RDONLY | O_DIRECTORY);
  ENSURE(fd.ok());
  site.fd = std::move(fd).value();
  site.canary = Canary(site.fd.get());
  return site;
}

void Write(Site& site, std::string_view tar, size_t step, bool lowest) {
  ENSURE(::mkdirat(site.fd.get(), "root", 0755) == 0);
  Result<Fd> root = sys::OpenAt(site.fd.get(), "root", O_RDONLY | O_DIRECTORY);
  Result<Fd> lower = sys::OpenAt(site.fd.get(), "lower", O_RDONLY | O_DIRECTORY);
  ENSURE(root.ok() && lower.ok());
  std::vector<Fd> layers;
  layers.push_back(std::move(lower).value());
  image::LayerStack stack(std::move(layers));
  image::LayerBudget budget{1 << 20, 300};
  {
    image::LayerWriter writer(std::move(root).value(), lowest ? nullptr : &stack, budget);
    image::TarReader reader(InSteps(tar, step));
    bool written = writer.Write(reader).ok();
    if (written) ENSURE(image::ListLayer(writer.root(), &writer.content_hashes()).ok());
  }
  ENSURE(sys::RemoveTree(site.fd.get(), "root").ok());
  Result<std::vector<std::string>> names = sys::DirectoryNames(site.fd.get());
  ENSURE(names.ok() && names.value() == std::vector<std::string>({"canary", "lower"}));
  struct stat now = Canary(site.fd.get());
  ENSURE(now.st_ino == site.canary.st_ino && now.st_mode == site.canary.st_mode &&
         now.st_size == site.canary.st_size && now.st_nlink == site.canary.st_nlink &&
         now.st_ctim.tv_nsec == site.canary.st_ctim.tv_nsec);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static Site site = MakeSite();
  static int cleaned = ::atexit([] { (void)sys::RemoveTree(AT_FDCWD, site.top); });
  ENSURE(cleaned == 0);
  const size_t step = size_t{data[0]} + 1;
  std::string tar = WithChecksums(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  ENSURE(Listing(tar, step) == Listing(tar, SIZE_MAX));
  Write(site, tar, step, false);
  Write(site, tar, SIZE_MAX, true);
  return 0;
}
