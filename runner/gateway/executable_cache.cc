// SPDX-License-Identifier: Apache-2.0
#include "gateway/executable_cache.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace gateway {
namespace {

// The largest agent is about 250 MB; beyond this nothing is trusted.
constexpr off_t kExecutableBytesMax = off_t{2} << 30;
// More programs than a run has any use for: then new ones are refused.
constexpr size_t kExecutablesMax = 65536;

Result<std::array<uint8_t, 32>> HashFile(int fd) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) {
    return Error{Code::kBug, "SHA-256 does not start"};
  }
  std::vector<char> chunk(size_t{256} << 10);
  off_t at = 0;
  for (;;) {
    ssize_t n = ::pread(fd, chunk.data(), chunk.size(), at);
    if (n < 0) return Errno("pread");
    if (n == 0) break;
    EVP_DigestUpdate(hash.get(), chunk.data(), static_cast<size_t>(n));
    at += n;
    if (at > kExecutableBytesMax) return Error{Code::kInvalid, "the executable is too large"};
  }
  std::array<uint8_t, 32> digest{};
  EVP_DigestFinal_ex(hash.get(), digest.data(), nullptr);
  return digest;
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

Result<bool> ExecutableCache::Unchanged(const std::string& path, int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return Errno("fstat");
  if (Knows(path, st)) return true;
  std::array<uint8_t, 32> digest = TRY(HashFile(fd));
  auto found = seen_.find(path);
  if (found == seen_.end()) {
    if (seen_.size() >= kExecutablesMax) return Error{Code::kInvalid, "too many executables"};
    seen_.emplace(path, Seen{FingerprintOf(st), digest});
    return true;
  }
  if (found->second.sha256 != digest) return false;
  found->second.fingerprint = FingerprintOf(st);
  return true;
}

}  // namespace gateway
