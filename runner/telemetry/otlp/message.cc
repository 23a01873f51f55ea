// SPDX-License-Identifier: Apache-2.0
#include "telemetry/otlp/message.h"

#include <bit>
#include <charconv>
#include <optional>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/data/json_line.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"

namespace telemetry {
namespace {

// The wire types of protobuf ("Encoding", Message Structure).
constexpr uint32_t kVarint = 0;
constexpr uint32_t kEightBytes = 1;
constexpr uint32_t kLength = 2;
constexpr uint32_t kFourBytes = 5;

uint32_t WireTypeOf(Form form) {
  switch (form) {
    case Form::kText:
    case Form::kId:
    case Form::kMessage:
      return kLength;
    case Form::kNumber:
    case Form::kBoolean:
    case Form::kInteger:
      return kVarint;
    case Form::kFixed64:
    case Form::kDouble:
      return kEightBytes;
    case Form::kFixed32:
      return kFourBytes;
  }
  return kLength;
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(value >> (8 * i));
}

void AppendTag(const Field& field, uint32_t wire_type, std::string* out) {
  AppendVarint(uint64_t{field.number} << 3 | wire_type, out);
}

void AppendLengthAnd(std::string_view bytes, std::string* out) {
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

// One field of a message that came from outside.
struct WireField {
  uint64_t number = 0;
  uint64_t value = 0;  // Of a varint.
  std::string_view bytes;
};

std::optional<uint64_t> TakeVarint(std::string_view* rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest->front());
    rest->remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<WireField> TakeField(std::string_view* rest) {
  const std::optional<uint64_t> tag = TakeVarint(rest);
  if (!tag) return std::nullopt;
  WireField field;
  field.number = *tag >> 3;
  size_t bytes = 0;
  switch (*tag & 7) {
    case kVarint: {
      const std::optional<uint64_t> value = TakeVarint(rest);
      if (!value) return std::nullopt;
      field.value = *value;
      return field;
    }
    case kLength: {
      const std::optional<uint64_t> length = TakeVarint(rest);
      if (!length || *length > rest->size()) return std::nullopt;
      bytes = *length;
      break;
    }
    case kEightBytes:
      bytes = 8;
      break;
    case kFourBytes:
      bytes = 4;
      break;
    default:
      return std::nullopt;
  }
  if (bytes > rest->size()) return std::nullopt;
  field.bytes = rest->substr(0, bytes);
  rest->remove_prefix(bytes);
  return field;
}

constexpr uint64_t kPartialSuccess = 1;  // Of the answer.
constexpr uint64_t kRejected = 1;        // Of ExportTracePartialSuccess and its siblings.
constexpr uint64_t kErrorMessage = 2;

Rejection ParseProtobufRejection(std::string_view body) {
  Rejection rejection;
  while (const std::optional<WireField> answer = TakeField(&body)) {
    std::string_view partial = answer->number == kPartialSuccess ? answer->bytes : "";
    while (const std::optional<WireField> field = TakeField(&partial)) {
      if (field->number == kRejected) rejection.count = static_cast<int64_t>(field->value);
      if (field->number == kErrorMessage) rejection.reason = field->bytes;
    }
  }
  return rejection;
}

// A 64-bit integer is a string; some collectors write a number.
int64_t CountIn(const codec::Json& json) {
  if (json.string() == nullptr) return json.integer().value_or(0);
  int64_t value = 0;
  const std::string& text = *json.string();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Rejection ParseJsonRejection(std::string_view body) {
  Rejection rejection;
  const Result<codec::Json> json = codec::ParseJson(body);
  const codec::Json* partial = json.ok() ? json.value().Find("partialSuccess") : nullptr;
  if (partial == nullptr) return rejection;
  rejection.reason = partial->StringAt("errorMessage");
  for (const char* name : {"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"}) {
    const codec::Json* count = partial->Find(name);
    if (count != nullptr) rejection.count = CountIn(*count);
  }
  return rejection;
}

}  // namespace

Message& Message::Text(const Field& field, std::string_view value) {
  ENSURE(field.form == Form::kText || field.form == Form::kId);
  entries_.push_back({&field, std::string(value)});
  return *this;
}

Message& Message::Number(const Field& field, uint64_t value) {
  ENSURE(field.form >= Form::kNumber && field.form <= Form::kFixed32);
  entries_.push_back({&field, value});
  return *this;
}

Message& Message::Real(const Field& field, double value) {
  ENSURE(field.form == Form::kDouble);
  entries_.push_back({&field, value});
  return *this;
}

Message& Message::Child(const Field& field, Message value) {
  ENSURE(field.form == Form::kMessage);
  entries_.push_back({&field, std::make_unique<Message>(std::move(value))});
  return *this;
}

Message& Message::Append(Message more) {
  for (Entry& entry : more.entries_) entries_.push_back(std::move(entry));
  return *this;
}

// A value without its tag.
void Message::AppendScalar(const Entry& entry, std::string* out) {
  if (const auto* text = std::get_if<std::string>(&entry.value)) {
    AppendLengthAnd(*text, out);
  } else if (const auto* real = std::get_if<double>(&entry.value)) {
    AppendLittleEndian(std::bit_cast<uint64_t>(*real), 8, out);
  } else if (const auto* number = std::get_if<uint64_t>(&entry.value)) {
    const uint32_t wire_type = WireTypeOf(entry.field->form);
    if (wire_type == kVarint) AppendVarint(*number, out);
    if (wire_type == kEightBytes) AppendLittleEndian(*number, 8, out);
    if (wire_type == kFourBytes) AppendLittleEndian(*number, 4, out);
  }
}

void Message::AppendProtobuf(std::string* out) const {
  for (size_t i = 0; i < entries_.size();) {
    const Entry& entry = entries_[i];
    const Field& field = *entry.field;
    if (const auto* child = std::get_if<std::unique_ptr<Message>>(&entry.value)) {
      AppendTag(field, kLength, out);
      AppendLengthAnd((*child)->Protobuf(), out);
      ++i;
      continue;
    }
    const bool packed = field.repeated && WireTypeOf(field.form) != kLength;
    if (!packed) {
      AppendTag(field, WireTypeOf(field.form), out);
      AppendScalar(entry, out);
      ++i;
      continue;
    }
    std::string values;
    for (; i < entries_.size() && entries_[i].field == &field; ++i) {
      AppendScalar(entries_[i], &values);
    }
    AppendTag(field, kLength, out);
    AppendLengthAnd(values, out);
  }
}

void Message::AppendJsonValue(const Entry& entry, std::string* out) {
  if (const auto* child = std::get_if<std::unique_ptr<Message>>(&entry.value)) {
    (*child)->AppendJson(out);
  } else if (const auto* text = std::get_if<std::string>(&entry.value)) {
    codec::AppendJsonText(entry.field->form == Form::kId ? codec::EncodeHex(*text) : *text, out);
  } else if (const auto* real = std::get_if<double>(&entry.value)) {
    *out += codec::RenderJsonLine(codec::Json(*real));
  } else if (const auto* number = std::get_if<uint64_t>(&entry.value)) {
    const Form form = entry.field->form;
    if (form == Form::kBoolean) {
      *out += *number != 0 ? "true" : "false";
    } else if (form == Form::kInteger) {
      *out += '"' + std::to_string(static_cast<int64_t>(*number)) + '"';
    } else if (form == Form::kFixed64) {
      *out += '"' + std::to_string(*number) + '"';
    } else {
      *out += std::to_string(*number);
    }
  }
}

void Message::AppendJson(std::string* out) const {
  *out += '{';
  for (size_t i = 0; i < entries_.size();) {
    const Field& field = *entries_[i].field;
    if (i > 0) *out += ',';
    codec::AppendJsonText(field.name, out);
    *out += field.repeated ? ":[" : ":";
    for (const size_t first = i; i < entries_.size() && entries_[i].field == &field; ++i) {
      if (i > first) *out += ',';
      AppendJsonValue(entries_[i], out);
      if (!field.repeated) break;
    }
    if (field.repeated) {
      *out += ']';
    } else {
      ++i;
    }
  }
  *out += '}';
}

std::string Message::Protobuf() const {
  std::string out;
  AppendProtobuf(&out);
  return out;
}

std::string Message::Json() const {
  std::string out;
  AppendJson(&out);
  return out;
}

Rejection ParseRejection(std::string_view body, bool json) {
  Rejection rejection = json ? ParseJsonRejection(body) : ParseProtobufRejection(body);
  rejection.reason = codec::NeutralLine(rejection.reason, 300);
  return rejection;
}

}  // namespace telemetry
