// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <string.h>

Secret::Secret(std::string_view bytes)
    : bytes_(std::make_unique<char[]>(bytes.size())), size_(bytes.size()) {
  bytes.copy(bytes_.get(), bytes.size());
}

Secret::Secret(Secret&& other) noexcept
    : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    Wipe();
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() { Wipe(); }

void Secret::Wipe() {
  if (bytes_ != nullptr) ::explicit_bzero(bytes_.get(), size_);
}

namespace {

// A string that was longer, or short and moved from, has bytes beyond its size.
void WipeAll(std::string& text) {
  text.assign(text.capacity(), '\0');
  // Makes the compiler take the bytes for read, as explicit_bzero does, and keep the writes.
  __asm__ volatile("" : : "r"(text.data()) : "memory");
  text.clear();
}

}  // namespace

SecretString& SecretString::operator=(std::string&& other) noexcept {
  if (this == &other) return *this;
  WipeAll(*this);
  std::string::operator=(std::move(other));
  WipeAll(other);
  return *this;
}

SecretString::~SecretString() { WipeAll(*this); }

void Wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}
