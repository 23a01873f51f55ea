// SPDX-License-Identifier: Apache-2.0
// Attributes: the facts of a resource, span, point or log record by name, gathered and bounded
// before they become part of its message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "telemetry/otlp/message.h"

namespace telemetry {

// Attributes of a resource, span, point or log record, in order. A text that is empty is left out;
// others become valid UTF-8 and are cut at kTextBytesMax, since agents shaped some of them.
class Attributes {
 public:
  static constexpr size_t kTextBytesMax = 1024;
  static constexpr size_t kContentBytesMax = size_t{8} << 10;

  Attributes& Text(std::string_view key, std::string_view value, size_t bytes_max = kTextBytesMax);
  Attributes& Integer(std::string_view key, int64_t value);
  Attributes& Real(std::string_view key, double value);
  Attributes& Boolean(std::string_view key, bool value);
  Attributes& List(std::string_view key, const std::vector<std::string>& values);
  // Adds each pair whose key is not there yet.
  template <typename Key>
  Attributes& Texts(const std::vector<std::pair<Key, std::string>>& pairs) {
    for (const auto& [key, value] : pairs) {
      if (!Has(key)) Text(key, value);
    }
    return *this;
  }
  bool Has(std::string_view key) const;

  // Adds all of them to `message` as values of `field`, a list of KeyValue.
  void AppendTo(const Field& field, Message* message) const;

 private:
  using Value = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;
  std::vector<std::pair<std::string, Value>> all_;
};

}  // namespace telemetry
