// SPDX-License-Identifier: Apache-2.0
// A credential in memory: move-only, wiped on destruction, without a stream operator.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

// Bytes that must not outlive their use: move-only, in a heap buffer of its own, wiped on
// destruction. Not a std::string underneath, since moving a short string leaves its bytes behind.
// There is no stream operator, on purpose.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view bytes);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  bool empty() const { return size_ == 0; }
  // Returns the secret, borrowed, valid while this object lives; never copy it into a log, a record
  // or an error.
  std::string_view reveal() const { return {bytes_.get(), size_}; }

 private:
  void Wipe();
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

// Overwrites a copy of a secret that had to be a string, and empties it.
void Wipe(std::string& text);

// A string that holds a secret, or may: wiped when it is destroyed or assigned to. What it takes
// over leaves nothing behind in the string that it came from.
class SecretString : public std::string {
 public:
  SecretString() = default;
  SecretString(const char* text) : std::string(text) {}
  SecretString(const std::string& text) : std::string(text) {}
  SecretString(std::string&& text) noexcept { *this = std::move(text); }
  SecretString(SecretString&& other) noexcept { *this = std::move(other); }
  SecretString& operator=(std::string&& other) noexcept;
  SecretString& operator=(SecretString&& other) noexcept {
    return *this = static_cast<std::string&&>(other);
  }
  ~SecretString();
};
