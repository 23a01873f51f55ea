// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

// A text that all its copies share, and that does not change once it is there. For what is large
// and has many holders.
class SharedText {
 public:
  SharedText() = default;
  // Returns one whose text is set later, once, for all its copies. Until then it is empty.
  static SharedText Later() { return SharedText(std::string()); }
  // Sets the text of one that Later() made.
  void Set(std::string text) { *text_ = std::move(text); }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands wherever a string does.
  SharedText(std::string text) : text_(std::make_shared<std::string>(std::move(text))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  SharedText(const char* text) : SharedText(std::string(text)) {}

  // Returns whether there is a text, or will be: one that was never given is absent.
  bool present() const { return text_ != nullptr; }
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
  std::shared_ptr<std::string> text_;
};
