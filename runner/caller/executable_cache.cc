// SPDX-License-Identifier: Apache-2.0
#include "caller/executable_cache.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace caller {
namespace {

// More programs than a run has any use for: then new ones are refused.
constexpr size_t kExecutablesMax = 65536;
// A file with more holes than this, and larger than a piece, is made to cost time. A compressing
// file system shrinks programs by less.
constexpr int64_t kHolesFactor = 8;
constexpr size_t kChunkBytes = size_t{256} << 10;

bool OnReadOnlyMount(int fd) {
  struct statvfs mount {};
  return ::fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0;
}

bool MostlyHoles(const struct stat& st) {
  constexpr int64_t kBlockBytes = 512;  // stat(2), whatever the file system uses.
  bool large = st.st_size > static_cast<int64_t>(ExecutableCache::kPieceBytes);
  return large && st.st_blocks * kBlockBytes < st.st_size / kHolesFactor;
}

}  // namespace

ExecutableCache::Fingerprint ExecutableCache::FingerprintOf(const struct stat& st) {
  Fingerprint print;
  print.size = static_cast<uint64_t>(st.st_size);
  print.modified_ns = int64_t{st.st_mtim.tv_sec} * 1000000000 + st.st_mtim.tv_nsec;
  print.changed_ns = int64_t{st.st_ctim.tv_sec} * 1000000000 + st.st_ctim.tv_nsec;
  print.device = st.st_dev;
  print.inode = st.st_ino;
  return print;
}

bool ExecutableCache::Knows(const std::string& path, const struct stat& st) const {
  auto found = seen_.find(path);
  return found != seen_.end() && found->second.fingerprint == FingerprintOf(st);
}

std::optional<std::string> ExecutableCache::Refuse(const std::string& path,
                                                   const Fingerprint& fingerprint,
                                                   std::string why) {
  if (refused_.size() < kExecutablesMax) refused_[path] = {fingerprint, why};
  return why;
}

std::optional<std::string> ExecutableCache::Check(const std::string& path, Fd file) {
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return path + ": " + Errno("fstat").what;
  if (Knows(path, st)) return "";
  Fingerprint fingerprint = FingerprintOf(st);
  auto refused = refused_.find(path);
  if (refused != refused_.end() && refused->second.fingerprint == fingerprint) {
    return refused->second.why;
  }
  auto seen = seen_.find(path);
  if (seen == seen_.end() && seen_.size() >= kExecutablesMax) {
    return path + ": the run has used too many executables";
  }
  bool fixed = OnReadOnlyMount(file.get());
  if (seen != seen_.end() && (fixed || !seen->second.sha256.has_value())) {
    return Refuse(path, fingerprint, "Binary integrity violation: " + path + " has changed");
  }
  if (fixed) {
    seen_.emplace(path, Seen{fingerprint, std::nullopt});
    return "";
  }
  if (job_.has_value()) return std::nullopt;
  Status begun = Begin(path, std::move(file), st);
  if (!begun.ok()) return Refuse(path, fingerprint, path + ": " + begun.error().what);
  return std::nullopt;
}

Status ExecutableCache::Begin(const std::string& path, Fd file, const struct stat& st) {
  if (st.st_size > kExecutableBytesMax) return Error{Code::kInvalid, "the executable is too large"};
  if (MostlyHoles(st)) return Error{Code::kInvalid, "the executable is mostly sparse"};
  if (run_bytes_ + st.st_size > kRunBytesMax) {
    return Error{Code::kInvalid,
                 "the run has changed its executables too often for them to be verified"};
  }
  Job job;
  job.path = path;
  job.file = std::move(file);
  job.fingerprint = FingerprintOf(st);
  job.hash.reset(EVP_MD_CTX_new());
  if (!job.hash || EVP_DigestInit_ex(job.hash.get(), EVP_sha256(), nullptr) != 1) {
    return Error{Code::kBug, "SHA-256 does not start"};
  }
  run_bytes_ += st.st_size;
  job_ = std::move(job);
  return Ok();
}

bool ExecutableCache::Proceed() {
  if (!job_.has_value()) return true;
  std::vector<char> chunk(kChunkBytes);
  for (size_t left = kPieceBytes; left > 0;) {
    ssize_t n = ::pread(job_->file.get(), chunk.data(), std::min(left, chunk.size()), job_->read);
    bool too_long = n > 0 && job_->read + n > static_cast<int64_t>(job_->fingerprint.size);
    if (n < 0 || too_long) {
      Refuse(job_->path, job_->fingerprint, job_->path + ": the executable cannot be read whole");
      job_.reset();
      return true;
    }
    if (n == 0) {
      Finish();
      return true;
    }
    EVP_DigestUpdate(job_->hash.get(), chunk.data(), static_cast<size_t>(n));
    job_->read += n;
    left -= static_cast<size_t>(n);
  }
  return false;
}

void ExecutableCache::Finish() {
  Job job = std::move(*job_);
  job_.reset();
  struct stat st {};
  // Written to meanwhile: the next to ask begins again.
  if (::fstat(job.file.get(), &st) != 0 || FingerprintOf(st) != job.fingerprint) return;
  std::array<uint8_t, 32> digest{};
  EVP_DigestFinal_ex(job.hash.get(), digest.data(), nullptr);
  auto [seen, first] = seen_.try_emplace(job.path, Seen{job.fingerprint, digest});
  if (first || seen->second.sha256 == digest) {
    seen->second.fingerprint = job.fingerprint;
  } else {
    Refuse(job.path, job.fingerprint, "Binary integrity violation: " + job.path + " has changed");
  }
}

}  // namespace caller
