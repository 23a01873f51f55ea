// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/snapshot_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "base/sys.h"
#include "base/tree.h"
#include "image/source/manifest.h"
#include "session/snapshot/layout_files.h"
#include "session/snapshot/part_file.h"
#include "session/snapshot/snapshot.h"
#include "session/snapshot/snapshot_document.h"

namespace session {
namespace {

// The user's layout while no other process changes it.
struct OwnLayout {
  Fd lock;  // The layout's directory.
  Fd blobs;
  std::string index;
};

// Returns nothing if there are no snapshots.
Result<std::optional<OwnLayout>> OpenOwn() {
  const std::string directory = DefaultSnapshots();
  Result<Fd> lock = sys::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!lock.ok() && sys::IsAbsent(lock.error())) return std::optional<OwnLayout>();
  OwnLayout own;
  own.lock = TRY(std::move(lock).Context(directory));
  TRY(LockLayout(own.lock.get()).Context(directory));
  own.index = TRY(ReadIndex(own.lock.get()).Context(directory));
  if (own.index.empty()) return std::optional<OwnLayout>();
  own.blobs = TRY(OpenBlobs(own.lock.get()).Context(directory));
  return std::optional(std::move(own));
}

std::string FileOf(const std::string& digest) { return digest.substr(sizeof "sha256:" - 1); }

// What a manifest, or an index of several, says that it consists of; nothing if it is not there.
Result<std::optional<std::variant<image::Index, image::Manifest>>> ReadManifest(
    int blobs, const std::string& digest) {
  using Read = std::optional<std::variant<image::Index, image::Manifest>>;
  if (!image::IsDigest(digest)) return Error{Code::kInvalid, "index.json: not a digest: " + digest};
  Result<Fd> file =
      sys::OpenAt(blobs, FileOf(digest), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file.ok() && sys::IsAbsent(file.error())) return Read();
  Fd opened = TRY(std::move(file).Context(digest));
  std::string bytes = TRY(sys::ReadAll(opened.get(), image::kManifestBytesMax).Context(digest));
  return Read(TRY(image::ParseManifest(bytes, "").Context(digest)));
}

// Adds `digest` and all that it refers to. A manifest that cannot be read ends this with an error:
// what it needs is not known then.
Status AddNeeded(int blobs, const std::string& digest, std::set<std::string>* needed) {
  if (!needed->insert(digest).second) return Ok();
  auto read = TRY(ReadManifest(blobs, digest));
  if (!read) return Ok();
  if (const auto* index = std::get_if<image::Index>(&*read)) {
    for (const image::Descriptor& child : index->manifests) {
      TRY(AddNeeded(blobs, child.digest, needed));
    }
    return Ok();
  }
  const auto& manifest = std::get<image::Manifest>(*read);
  needed->insert(manifest.config.digest);
  for (const image::Descriptor& layer : manifest.layers) needed->insert(layer.digest);
  return Ok();
}

Result<SnapshotRoom> RemoveUnneeded(const OwnLayout& own) {
  std::set<std::string> needed;
  for (const IndexEntry& entry : TRY(EntriesOfIndex(own.index))) {
    TRY(AddNeeded(own.blobs.get(), entry.digest, &needed));
  }
  RemoveLeftParts(own.blobs.get());
  SnapshotRoom room;
  for (const std::string& name : TRY(sys::DirectoryNames(own.blobs.get()))) {
    struct stat st {};
    if (!image::IsDigest("sha256:" + name) ||
        ::fstatat(own.blobs.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    bool removed =
        !needed.contains("sha256:" + name) && ::unlinkat(own.blobs.get(), name.c_str(), 0) == 0;
    (removed ? room.bytes_freed : room.bytes_left) += st.st_size;
  }
  return room;
}

}  // namespace

Result<std::vector<ListedSnapshot>> ListSnapshots() {
  std::vector<ListedSnapshot> list;
  std::optional<OwnLayout> own = TRY(OpenOwn());
  if (!own) return list;
  for (const IndexEntry& entry : TRY(EntriesOfIndex(own->index))) {
    auto read = TRY(ReadManifest(own->blobs.get(), entry.digest));
    const auto* manifest = read ? std::get_if<image::Manifest>(&*read) : nullptr;
    if (manifest == nullptr || manifest->layers.size() != 1 ||
        manifest->layers.front().media_type != kSnapshotLayerType) {
      continue;  // Such as a signature.
    }
    struct stat st {};
    if (::fstatat(own->blobs.get(), FileOf(entry.digest).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    list.push_back({entry.digest, entry.tag,
                    st.st_size + manifest->config.size + manifest->layers.front().size,
                    st.st_mtim.tv_sec});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.taken < b.taken; });
  return list;
}

Result<SnapshotRoom> DeleteSnapshot(const std::string& tag_or_digest) {
  std::optional<OwnLayout> own = TRY(OpenOwn());
  std::optional<std::string> left;
  if (own) left = TRY(RemoveFromIndex(own->index, tag_or_digest));
  if (!left) {
    return Error{Code::kNotFound, "there is no snapshot '" + tag_or_digest + "'",
                 "agentic-ci sandbox snapshots"};
  }
  own->index = std::move(*left);
  TRY(WriteIndex(own->lock.get(), own->index));
  return RemoveUnneeded(*own);
}

Result<SnapshotRoom> PruneSnapshots() {
  std::optional<OwnLayout> own = TRY(OpenOwn());
  if (!own) return SnapshotRoom{};
  return RemoveUnneeded(*own);
}

}  // namespace session
