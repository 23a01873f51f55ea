// SPDX-License-Identifier: Apache-2.0
#include "telemetry/attributes.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "telemetry/otlp/messages.h"

namespace telemetry {
namespace {

constexpr size_t kListMax = 64;

}  // namespace

Attributes& Attributes::Text(std::string_view key, std::string_view value, size_t bytes_max) {
  if (value.empty()) return *this;
  all_.emplace_back(key, codec::CutUtf8(codec::ValidUtf8(value), bytes_max));
  return *this;
}

Attributes& Attributes::Integer(std::string_view key, int64_t value) {
  all_.emplace_back(key, value);
  return *this;
}

Attributes& Attributes::Real(std::string_view key, double value) {
  all_.emplace_back(key, value);
  return *this;
}

Attributes& Attributes::Boolean(std::string_view key, bool value) {
  all_.emplace_back(key, value);
  return *this;
}

Attributes& Attributes::List(std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) {
    if (texts.size() == kListMax) break;
    texts.push_back(codec::CutUtf8(codec::ValidUtf8(value), kTextBytesMax));
  }
  all_.emplace_back(key, std::move(texts));
  return *this;
}

bool Attributes::Has(std::string_view key) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) { return one.first == key; });
}

void Attributes::AppendTo(const Field& field, Message* message) const {
  for (const auto& [key, value] : all_) {
    Message any;
    if (const auto* text = std::get_if<std::string>(&value)) {
      any.Text(otlp::kStringValue, *text);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      any.Number(otlp::kIntValue, static_cast<uint64_t>(*integer));
    } else if (const auto* real = std::get_if<double>(&value)) {
      any.Real(otlp::kDoubleValue, *real);
    } else if (const auto* truth = std::get_if<bool>(&value)) {
      any.Number(otlp::kBoolValue, *truth ? 1 : 0);
    } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
      Message values;
      for (const std::string& one : *list) {
        Message item;
        item.Text(otlp::kStringValue, one);
        values.Child(otlp::kArrayValues, std::move(item));
      }
      any.Child(otlp::kArrayValue, std::move(values));
    }
    Message pair;
    pair.Text(otlp::kKey, key).Child(otlp::kValue, std::move(any));
    message->Child(field, std::move(pair));
  }
}

}  // namespace telemetry
