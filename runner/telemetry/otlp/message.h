// SPDX-License-Identifier: Apache-2.0
// A message of OpenTelemetry's protocol as a tree of values, and its two encodings: protobuf and
// JSON. Both follow from the field's row in messages.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace telemetry {

// How a field's value is written in protobuf; in JSON (OTLP specification 1.11, "JSON Protobuf
// Encoding").
enum class Form : uint8_t {
  kText,     // string; a string.
  kId,       // bytes; lower-case hexadecimal digits, where protobuf's own JSON has base64.
  kNumber,   // uint32 or enum; a number.
  kBoolean,  // bool; true or false.
  kInteger,  // int64; its decimal digits as a string.
  kFixed64,  // fixed64; likewise.
  kFixed32,  // fixed32; a number.
  kDouble,   // double; a number.
  kMessage,  // A message; an object.
};

struct Field {
  std::string_view name;  // In JSON.
  uint32_t number;        // In protobuf.
  Form form;
  bool repeated = false;  // Numbers, which are kFixed64 or kDouble, are packed.
};

// Every value that is added is written, also one that is the default of its field. Of a repeated
// field, the values are added one after the other, with no other field between them.
class Message {
 public:
  Message& Text(const Field& field, std::string_view value);  // kText, valid UTF-8; kId, as bytes.
  Message& Number(const Field& field, uint64_t value);        // kInteger in two's complement.
  Message& Real(const Field& field, double value);            // kDouble, finite.
  Message& Child(const Field& field, Message value);          // kMessage.
  Message& Append(Message more);                              // All values of another.

  std::string Protobuf() const;
  std::string Json() const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    const Field* field;  // Of messages.h, which outlives every message.
    std::variant<std::string, uint64_t, double, std::unique_ptr<Message>> value;
  };
  void AppendJson(std::string* out) const;
  // Appends a field of one value in protobuf.
  static void AppendValue(const Entry& entry, std::string* out);
  static uint64_t BitsOf(const Entry& entry);  // Of a number.
  static void AppendJsonValue(const Entry& entry, std::string* out);

  std::vector<Entry> entries_;
};

// The items that a collector refused of a request that it accepted, and why. Both are empty if it
// took everything.
struct Rejection {
  int64_t count = 0;
  std::string reason;
};

// Parses the body of a response with the status 200: ExportTraceServiceResponse and its two
// siblings. A body that is something else counts as an empty one: the status said that all was
// taken.
Rejection ParseRejection(std::string_view body, bool json);

}  // namespace telemetry
