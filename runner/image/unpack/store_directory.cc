// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/store_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/sys.h"
#include "base/tree.h"
#include "image/unpack/layer_listing.h"

namespace image {
namespace {

constexpr size_t kRecordBytesMax = 1 << 20;
constexpr std::chrono::milliseconds kLockPoll{20};

// A layer of our own that others could write to would be everybody's.
Status CheckOwner(int directory, const std::string& path) {
  struct stat st {};
  if (::fstat(directory, &st) != 0) return Errno(path);
  if (st.st_uid != ::geteuid()) {
    return Error{Code::kRefused,
                 "the image store " + path + " belongs to user " + std::to_string(st.st_uid)};
  }
  if ((st.st_mode & 022) != 0) {
    return Error{Code::kRefused, "others may write to the image store " + path,
                 "chmod go-w " + path};
  }
  return Ok();
}

Result<Fd> OpenPart(int store, const char* name, const std::string& path) {
  if (::mkdirat(store, name, 0700) != 0 && errno != EEXIST && errno != EROFS) {
    return Errno("mkdir " + path + "/" + name);
  }
  Fd fd = TRY(sys::OpenAt(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(CheckOwner(fd.get(), path + "/" + name));
  return fd;
}

Status Flock(int fd, int how) {
  while (::flock(fd, how) != 0) {
    if (errno != EINTR) return Errno("flock");
  }
  return Ok();
}

// Returns whether `name` in `parent` still is what `fd` was opened as.
bool StillThere(int parent, const std::string& name, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return ::fstatat(parent, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino;
}

}  // namespace

StagedLayer::~StagedLayer() {
  if (lock.valid()) (void)sys::RemoveTree(parent, name);  // Else the next sweep does it.
}

ChainLock::~ChainLock() {
  if (fd.valid()) (void)::unlinkat(parent, name.c_str(), 0);
}

Result<StoreDirectory> StoreDirectory::Open(const std::string& path, uid_t owner, gid_t group) {
  if (!sys::Exists(path)) TRY(sys::MakeDirectories(path, 0700));
  StoreDirectory store;
  store.path_ = TRY(sys::RealPath(path));
  store.owner_ = owner;
  store.group_ = group;
  Fd fd = TRY(sys::Open(store.path_, O_RDONLY | O_DIRECTORY));
  TRY(CheckOwner(fd.get(), store.path_));
  store.layers_ = TRY(OpenPart(fd.get(), "layers", store.path_));
  store.staging_ = TRY(OpenPart(fd.get(), "staging", store.path_));
  store.locks_ = TRY(OpenPart(fd.get(), "locks", store.path_));
  return store;
}

Result<std::optional<StoredLayer>> StoreDirectory::OpenLayer(const std::string& id) {
  for (;;) {
    Result<Fd> opened = sys::OpenAt(layers_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened.ok()) {
      if (opened.error().code == Code::kNotFound) return std::optional<StoredLayer>();
      return std::move(opened).error();
    }
    StoredLayer layer;
    layer.lock = std::move(opened).value();
    TRY(Flock(layer.lock.get(), LOCK_SH));
    if (!StillThere(layers_.get(), id, layer.lock.get())) continue;
    layer.root = TRY(sys::OpenAt(layer.lock.get(), "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    Fd record = TRY(sys::OpenAt(layer.lock.get(), "record", O_RDONLY | O_NOFOLLOW));
    std::string text = TRY(sys::ReadAll(record.get(), kRecordBytesMax));
    layer.record = TRY(ParseRecord(text));
    layer.path = path_ + "/layers/" + id + "/root";
    return std::optional(std::move(layer));
  }
}

Result<std::optional<StoredLayer>> StoreDirectory::Find(const std::string& id) {
  Result<std::optional<StoredLayer>> found = OpenLayer(id);
  if (found.ok() && !found.value()) return found;
  if (found.ok()) {
    StoredLayer& layer = *found.value();
    (void)::futimens(layer.lock.get(), nullptr);  // Not in a store that is read-only.
    std::string boot = BootId();
    if (layer.record.boot == boot && !boot.empty()) return found;
    Result<LayerListing> listing = ListLayer(layer.root.get(), nullptr);
    if (listing.ok() && listing.value().digest == layer.record.listing_digest) {
      layer.record.boot = boot;
      (void)WriteRecord(layer.lock.get(), layer.record);
      return found;
    }
  }
  found = std::optional<StoredLayer>();  // It comes with its lock.
  TRY(Retire(id));
  return found;
}

Status StoreDirectory::Retire(const std::string& id) {
  std::string name = sys::RandomHex();
  if (::renameat(layers_.get(), id.c_str(), staging_.get(), name.c_str()) != 0) {
    return errno == ENOENT ? Ok() : Status(Errno("removing layer " + id));
  }
  Result<Fd> fd = sys::OpenAt(staging_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.ok() || ::flock(fd.value().get(), LOCK_EX | LOCK_NB) != 0) return Ok();
  return sys::RemoveTree(staging_.get(), name);
}

Status StoreDirectory::WriteRecord(int layer, const LayerRecord& record) {
  // Two runs may do this at once, and both write the same.
  std::string name = sys::RandomHex();
  {
    Fd fd = TRY(sys::OpenAt(layer, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY(sys::WriteAll(fd.get(), RenderRecord(record)));
  }
  if (::renameat(layer, name.c_str(), layer, "record") != 0) return Errno("rename");
  return Ok();
}

Result<StagedLayer> StoreDirectory::Stage() {
  // While this is held, no other process sweeps, so none takes the directory for garbage before it
  // is locked.
  Fd making = TRY(sys::OpenAt(staging_.get(), ".", O_RDONLY | O_DIRECTORY));
  TRY(Flock(making.get(), LOCK_SH));
  std::string name = sys::RandomHex();
  if (::mkdirat(staging_.get(), name.c_str(), 0700) != 0) {
    return Errno("mkdir " + path_ + "/staging/" + name);
  }
  StagedLayer staged;
  staged.parent = staging_.get();
  staged.name = name;
  staged.lock = TRY(sys::OpenAt(staging_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(Flock(staged.lock.get(), LOCK_SH));
  if (::mkdirat(staged.lock.get(), "root", 0755) != 0) return Errno("mkdir root");
  staged.root = TRY(sys::OpenAt(staged.lock.get(), "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::geteuid() != owner_ && ::fchown(staged.root.get(), owner_, group_) != 0) {
    // Root of a user namespace with no other users, as in a rootless container.
    Error error = Errno("giving a layer to user " + std::to_string(owner_));
    error.code = Code::kUnsupported;
    error.hint = "setpriv --reuid 1000 --regid 1000 --clear-groups agentic-ci run ...";
    return error;
  }
  // The umask may have masked bits.
  if (::fchmod(staged.root.get(), 0755) != 0) return Errno("chmod");
  return staged;
}

Result<StoredLayer> StoreDirectory::Publish(StagedLayer staged, const std::string& id,
                                            const LayerRecord& record) {
  TRY(WriteRecord(staged.lock.get(), record));
  if (::renameat2(staging_.get(), staged.name.c_str(), layers_.get(), id.c_str(),
                  RENAME_NOREPLACE) == 0) {
    StoredLayer layer;
    layer.lock = std::move(staged.lock);
    layer.root = std::move(staged.root);
    layer.record = record;
    layer.path = path_ + "/layers/" + id + "/root";
    (void)::futimens(layer.lock.get(), nullptr);
    return layer;
  }
  if (errno != EEXIST && errno != ENOTEMPTY) return Errno("publishing layer " + id);
  std::optional<StoredLayer> there = TRY(Find(id));
  if (there) return std::move(*there);
  return Error{Code::kTemporary, "layer " + id + " was removed while it was being unpacked"};
}

Result<ChainLock> StoreDirectory::LockChain(const std::string& chain, Deadline deadline,
                                            const std::function<bool()>& given_up) {
  ChainLock lock;
  while (!given_up()) {
    Fd fd = TRY(sys::OpenAt(locks_.get(), chain, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    bool locked = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK && errno != EINTR) return Errno("flock");
    if (locked && StillThere(locks_.get(), chain, fd.get())) {
      lock.parent = locks_.get();
      lock.name = chain;
      lock.fd = std::move(fd);
      return lock;
    }
    if (locked) continue;  // Its holder removed it just now.
    if (deadline.passed()) break;
    std::this_thread::sleep_for(kLockPoll);
  }
  return Error{Code::kTemporary, "timed out waiting for another run that unpacks the same layer"};
}

Result<std::vector<std::string>> StoreDirectory::Ids() {
  return sys::DirectoryNames(layers_.get());
}

Result<std::string> StoreDirectory::Examine(const std::string& id) {
  Result<std::optional<StoredLayer>> layer = OpenLayer(id);
  if (!layer.ok()) return layer.error().what;
  if (!layer.value()) return std::string();  // Removed since it was listed.
  Result<LayerListing> listing = ListLayer(layer.value()->root.get(), nullptr);
  if (!listing.ok()) return listing.error().what;
  const LayerRecord& record = layer.value()->record;
  if (listing.value().digest == record.listing_digest) return std::string();
  return "was unpacked to " + std::to_string(record.entries) + " entries of " +
         std::to_string(record.bytes) + " bytes, and is now " +
         std::to_string(listing.value().entries) + " of " + std::to_string(listing.value().bytes) +
         (listing.value().bytes == record.bytes ? ", changed" : "");
}

Result<StoreDirectory::Use> StoreDirectory::LastUse(const std::string& id) {
  Fd fd = TRY(sys::OpenAt(layers_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return Errno("fstat " + id);
  Use use;
  use.last = st.st_mtim;
  Result<Fd> record = sys::OpenAt(fd.get(), "record", O_RDONLY | O_NOFOLLOW);
  if (!record.ok()) return use;
  std::string text = TRY(sys::ReadAll(record.value().get(), kRecordBytesMax));
  Result<LayerRecord> parsed = ParseRecord(text);
  if (parsed.ok()) use.bytes = parsed.value().bytes;
  return use;
}

Result<bool> StoreDirectory::RemoveUnused(const std::string& id) {
  Result<Fd> fd = sys::OpenAt(layers_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.ok()) return fd.error().code == Code::kNotFound;
  if (::flock(fd.value().get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!StillThere(layers_.get(), id, fd.value().get())) return true;
  std::string name = sys::RandomHex();
  if (::renameat(layers_.get(), id.c_str(), staging_.get(), name.c_str()) != 0) {
    return errno == ENOENT ? Result<bool>(true) : Result<bool>(Errno("removing layer " + id));
  }
  TRY(sys::RemoveTree(staging_.get(), name));
  return true;
}

Status StoreDirectory::Sweep() {
  Fd sweeping = TRY(sys::OpenAt(staging_.get(), ".", O_RDONLY | O_DIRECTORY));
  if (::flock(sweeping.get(), LOCK_EX | LOCK_NB) != 0)
    return Ok();  // Another process is working here.
  std::vector<std::string> names = TRY(sys::DirectoryNames(staging_.get()));
  for (const std::string& name : names) {
    Result<Fd> fd = sys::OpenAt(staging_.get(), name, O_RDONLY | O_NOFOLLOW);
    if (!fd.ok() || ::flock(fd.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)sys::RemoveTree(staging_.get(), name);
  }
  std::vector<std::string> locks = TRY(sys::DirectoryNames(locks_.get()));
  for (const std::string& name : locks) {
    Result<Fd> fd = sys::OpenAt(locks_.get(), name, O_RDONLY | O_NOFOLLOW);
    if (!fd.ok() || ::flock(fd.value().get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (StillThere(locks_.get(), name, fd.value().get())) {
      (void)::unlinkat(locks_.get(), name.c_str(), 0);
    }
  }
  return Ok();
}

}  // namespace image
