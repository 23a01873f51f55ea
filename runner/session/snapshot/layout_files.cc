// SPDX-License-Identifier: Apache-2.0
#include "session/snapshot/layout_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "session/snapshot/part_file.h"

namespace session {
namespace {

constexpr char kLayoutName[] = "oci-layout";
constexpr char kLayoutText[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
constexpr char kIndexName[] = "index.json";
constexpr size_t kIndexBytesMax = size_t{4} << 20;

}  // namespace

Status WriteWhole(int directory, const std::string& name, std::string_view text) {
  PartFile file = TRY(PartFile::Create(directory, 0644));
  TRY(sys::WriteAll(file.fd().get(), text).Context("writing " + name));
  return file.Publish(name);
}

// The layout may lie in a checkout.
Result<Fd> OpenBlobs(int layout) {
  Fd at = TRY(sys::OpenAt(layout, ".", O_RDONLY | O_DIRECTORY));
  for (const char* name : {"blobs", "sha256"}) {
    if (::mkdirat(at.get(), name, 0700) != 0 && errno != EEXIST) return Errno(name);
    at = TRY(sys::OpenAt(at.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).Context(name));
  }
  return at;
}

Result<std::string> ReadIndex(int layout) {
  Result<Fd> file = sys::OpenAt(layout, kIndexName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file.ok() && sys::IsAbsent(file.error())) return std::string();
  Fd index = TRY(std::move(file).Context(kIndexName));
  struct stat st {};
  if (::fstat(index.get(), &st) != 0) return Errno("fstat");
  if (!S_ISREG(st.st_mode))
    return Error{Code::kInvalid, std::string(kIndexName) + " is not a file"};
  return sys::ReadAll(index.get(), kIndexBytesMax);
}

Status LockLayout(int layout) {
  while (::flock(layout, LOCK_EX) != 0) {
    if (errno != EINTR) return Errno("flock");
  }
  return Ok();
}

Status WriteIndex(int layout, std::string_view index) {
  struct stat st {};
  // One that is there is not ours to replace.
  if (::fstatat(layout, kLayoutName, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    TRY(WriteWhole(layout, kLayoutName, kLayoutText));
  } else if (!S_ISREG(st.st_mode)) {
    return Error{Code::kInvalid, std::string(kLayoutName) + " is not a file"};
  }
  return WriteWhole(layout, kIndexName, index);
}

}  // namespace session
