// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

// A text that never changes, and that all its copies share. For what is large and has many holders.
class SharedText {
 public:
  SharedText() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it stands wherever a string does.
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedText(const char* text) : SharedText(std::string(text)) {}

  const std::string& get() const {
    static const std::string empty;
    return text_ == nullptr ? empty : *text_;
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const std::string&() const { return get(); }
  friend bool operator==(const SharedText& text, std::string_view other) {
    return text.get() == other;
  }

 private:
  std::shared_ptr<const std::string> text_;
};
