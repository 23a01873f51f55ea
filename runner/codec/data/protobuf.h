// SPDX-License-Identifier: Apache-2.0
// Messages of protocol buffers as JSON values, by tables of their fields. protozero reads and
// writes the bytes (protobuf.cc); neither its types nor its exceptions are visible outside.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/data/json.h"

namespace codec {

enum class FieldKind {
  kBool,
  kInteger,  // int32, int64, uint32, uint64: a whole number up to 2^63 - 1.
  kDouble,
  kText,
  kBytes,  // A JSON string of any bytes, which is not to be rendered as JSON.
  kWord,   // An enum, by the words of its table.
  kMessage,
};
enum class FieldCount { kOne, kList, kMap };  // A map has texts as its keys: a JSON object.

struct MessageShape;

struct MessageField {
  uint32_t number = 0;
  std::string_view name;  // Of the JSON object's member.
  FieldKind kind = FieldKind::kText;
  FieldCount count = FieldCount::kOne;
  const MessageShape* message = nullptr;         // Of kMessage.
  std::span<const std::string_view> words = {};  // Of kWord: the word of each number, from 0.
};

// The fields of a message that are written and read.
struct MessageShape {
  std::span<const MessageField> fields;
};

// Returns the bytes of a message. Every member is written, a false or an empty one, too. Fails with
// kInvalid, naming the member, for one that `shape` does not have or of another type.
Result<std::string> WriteMessage(const Json& json, const MessageShape& shape);

// Parses a message into a JSON object. A field that is absent is absent there, as is one that
// `shape` does not have; a number of an enum without a word stays a number. Fails with kInvalid for
// what is not such a message, and for messages within messages beyond 64.
Result<Json> ReadMessage(std::string_view bytes, const MessageShape& shape);

// For messages that have no such table: each appends one field to `message`.
void AppendVarint(uint32_t number, uint64_t value, std::string* message);
void AppendFixed32(uint32_t number, uint32_t value, std::string* message);
void AppendFixed64(uint32_t number, uint64_t value, std::string* message);
// A list of fixed64, or of doubles as their bits.
void AppendPacked(uint32_t number, std::span<const uint64_t> values, std::string* message);
// A text, bytes or a message.
void AppendBytes(uint32_t number, std::string_view bytes, std::string* message);

}  // namespace codec
