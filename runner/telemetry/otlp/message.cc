// SPDX-License-Identifier: Apache-2.0
#include "telemetry/otlp/message.h"

#include <bit>
#include <charconv>

#include "base/result.h"
#include "codec/data/json.h"
#include "codec/data/json_line.h"
#include "codec/data/protobuf.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"

namespace telemetry {
namespace {

constexpr char kPartialSuccess[] = "partialSuccess";

using codec::FieldKind;

// ExportTracePartialSuccess and its siblings, and the response around one.
constexpr codec::MessageField kPartialFields[] = {
    {1, "rejected", FieldKind::kInteger},
    {2, "errorMessage", FieldKind::kText},
};
constexpr codec::MessageShape kPartial{kPartialFields};
constexpr codec::MessageField kResponseFields[] = {
    {1, kPartialSuccess, FieldKind::kMessage, codec::FieldCount::kOne, &kPartial},
};
constexpr codec::MessageShape kResponse{kResponseFields};

Rejection ParseProtobufRejection(std::string_view body) {
  const Result<codec::Json> response = codec::ReadMessage(body, kResponse);
  const codec::Json* partial = response.ok() ? response.value().Find(kPartialSuccess) : nullptr;
  if (partial == nullptr) return {};
  return {partial->IntegerAt("rejected"), partial->StringAt("errorMessage")};
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
  const codec::Json* partial = json.ok() ? json.value().Find(kPartialSuccess) : nullptr;
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

void Message::AppendValue(const Entry& entry, std::string* out) {
  const Field& field = *entry.field;
  if (const auto* child = std::get_if<std::unique_ptr<Message>>(&entry.value)) {
    codec::AppendBytes(field.number, (*child)->Protobuf(), out);
  } else if (const auto* text = std::get_if<std::string>(&entry.value)) {
    codec::AppendBytes(field.number, *text, out);
  } else if (field.form == Form::kFixed64 || field.form == Form::kDouble) {
    codec::AppendFixed64(field.number, BitsOf(entry), out);
  } else if (field.form == Form::kFixed32) {
    codec::AppendFixed32(field.number, static_cast<uint32_t>(BitsOf(entry)), out);
  } else {
    codec::AppendVarint(field.number, BitsOf(entry), out);
  }
}

uint64_t Message::BitsOf(const Entry& entry) {
  const auto* real = std::get_if<double>(&entry.value);
  return real != nullptr ? std::bit_cast<uint64_t>(*real) : std::get<uint64_t>(entry.value);
}

std::string Message::Protobuf() const {
  std::string out;
  for (size_t i = 0; i < entries_.size();) {
    const Field& field = *entries_[i].field;
    if (!field.repeated || (field.form != Form::kFixed64 && field.form != Form::kDouble)) {
      AppendValue(entries_[i++], &out);
      continue;
    }
    std::vector<uint64_t> values;
    for (; i < entries_.size() && entries_[i].field == &field; ++i) {
      values.push_back(BitsOf(entries_[i]));
    }
    codec::AppendPacked(field.number, values, &out);
  }
  return out;
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
