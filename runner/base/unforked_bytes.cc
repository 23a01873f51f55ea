// SPDX-License-Identifier: Apache-2.0
#include "base/unforked_bytes.h"

#include <string.h>
#include <sys/mman.h>

#include <utility>

Result<UnforkedBytes> UnforkedBytes::Copy(std::string_view bytes) {
  UnforkedBytes copy;
  if (bytes.empty()) return copy;
  void* memory =
      ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Errno("mmap");
  copy.bytes_ = static_cast<char*>(memory);
  copy.size_ = bytes.size();
  const bool hidden = ::madvise(memory, bytes.size(), MADV_WIPEONFORK) == 0 &&
                      ::madvise(memory, bytes.size(), MADV_DONTDUMP) == 0;
  if (!hidden) {
    return Error{Code::kUnsupported, "the kernel cannot wipe secrets in forked processes"};
  }
  bytes.copy(copy.bytes_, bytes.size());
  return copy;
}

UnforkedBytes::UnforkedBytes(UnforkedBytes&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}

UnforkedBytes& UnforkedBytes::operator=(UnforkedBytes&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(size_, other.size_);
  return *this;
}

UnforkedBytes::~UnforkedBytes() {
  if (bytes_ == nullptr) return;
  ::explicit_bzero(bytes_, size_);
  ::munmap(bytes_, size_);
}
