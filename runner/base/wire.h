// SPDX-License-Identifier: Apache-2.0
// Messages between the processes of a run: a sequence of values. Both ends are this same program on
// one machine, so numbers are sent as they are in memory, without field names; the reader still
// trusts nothing. A text or list is preceded by its size. A struct's members are listed once, for
// both directions, by a function in the struct's namespace:
//
//   template <typename Archive>
//   void Visit(Archive& archive, Question& value) {
//     archive(value.number, value.address);
//   }
//
// WIRE_ALL(Question, number, address) is the same for a struct that is sent whole. It does not
// compile while a member is missing: a structured binding has as many names as there are members.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

#define WIRE_ALL(Type, ...)                   \
  template <typename Archive>                 \
  void Visit(Archive& archive, Type& value) { \
    auto& [__VA_ARGS__] = value;              \
    archive(__VA_ARGS__);                     \
  }

namespace wire {

inline constexpr size_t kErrorTextBytesMax = 8192;  // Longer texts are cut.
inline constexpr size_t kErrorFileBytesMax = 1024;  // Likewise.

class Writer {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(out_); }

 private:
  void Put(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  void Put(const std::string& text) { Put(std::string_view(text)); }
  void Put(const Error& error) {
    auto cut = [](std::string_view text) { return text.substr(0, kErrorTextBytesMax); };
    (*this)(error.code, cut(error.what), cut(error.hint), error.os_error, error.kind,
            std::string_view(error.place.file).substr(0, kErrorFileBytesMax), error.place.line,
            error.place.column);
  }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Put(static_cast<uint32_t>(list.size()));
    for (const T& item : list) Put(item);
  }
  template <typename T, size_t N>
  void Put(const std::array<T, N>& list) {
    for (const T& item : list) Put(item);
  }
  template <typename... T>
  void Put(const std::variant<T...>& value) {
    Put(static_cast<uint8_t>(value.index()));
    std::visit([this](const auto& held) { Put(held); }, value);
  }
  template <typename T>
  void Put(const T& value) {
    if constexpr (std::is_class_v<T>) {
      Visit(*this, const_cast<T&>(value));  // Writing only reads the value.
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }

  std::string out_;
};

// Never reads or allocates beyond the message. An enumeration may get any value of its underlying
// type: the caller checks it. (A Code is checked here.)
class Reader {
 public:
  explicit Reader(std::string_view message) : rest_(message) {}

  template <typename... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  // True if every value was there, and nothing was left behind.
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view Next(size_t size) {
    ok_ = ok_ && size <= rest_.size();
    std::string_view bytes = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  uint32_t Size() {
    uint32_t size = 0;
    Get(size);
    ok_ = ok_ && size <= rest_.size();  // An item has at least one byte.
    return ok_ ? size : 0;
  }
  void Get(std::string& text) { text = Next(Size()); }
  void Get(std::string_view& text) { text = Next(Size()); }  // A view into the message.
  void Get(bool& value) {
    uint8_t number = 0;
    Get(number);
    ok_ = ok_ && number <= 1;
    value = number == 1;
  }
  void Get(Error& error) {
    (*this)(error.code, error.what, error.hint, error.os_error, error.kind, error.place.file,
            error.place.line, error.place.column);
    ok_ = ok_ && error.code >= Code::kUsage && error.code <= Code::kBug;
    ok_ = ok_ && error.kind >= ErrorKind::kOther && error.kind <= ErrorKind::kReported;
  }
  template <typename T>
  void Get(std::vector<T>& list) {
    for (uint32_t left = Size(); left > 0 && ok_; --left) Get(list.emplace_back());
  }
  template <typename T, size_t N>
  void Get(std::array<T, N>& list) {
    for (T& item : list) Get(item);
  }
  template <typename... T>
  void Get(std::variant<T...>& value) {
    uint8_t index = 0;
    Get(index);
    uint8_t at = 0;
    bool known = ((at++ == index && (Get(value.template emplace<T>()), true)) || ...);
    ok_ = ok_ && known;
  }
  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_class_v<T>) {
      Visit(*this, value);
    } else {
      std::string_view bytes = Next(sizeof value);
      if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    }
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <typename... T>
std::string Write(const T&... values) {
  Writer writer;
  writer(values...);
  return writer.Take();
}

// Returns whether `message` is exactly such values; if not, some of them may have changed.
template <typename... T>
[[nodiscard]] bool Read(std::string_view message, T&... values) {
  Reader reader(message);
  reader(values...);
  return reader.complete();
}

}  // namespace wire
