// SPDX-License-Identifier: Apache-2.0
#include "codec/data/protobuf.h"

#include <algorithm>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>
#include <vector>

namespace codec {
namespace {

constexpr int kDepthMax = 64;
constexpr uint32_t kMapKey = 1;
constexpr uint32_t kMapValue = 2;

Error WrongType(const MessageField& field) {
  return Invalid("'" + std::string(field.name) + "' is of another type");
}

Status WriteFields(const Json& json, const MessageShape& shape, protozero::pbf_writer* writer);

// Writes one value as the field `number`.
Status WriteValue(const Json& value, const MessageField& field, uint32_t number,
                  protozero::pbf_writer* writer) {
  switch (field.kind) {
    case FieldKind::kBool:
      if (!value.boolean()) return WrongType(field);
      writer->add_bool(number, *value.boolean());
      return Ok();
    case FieldKind::kInteger:
      if (!value.integer()) return WrongType(field);
      writer->add_int64(number, *value.integer());
      return Ok();
    case FieldKind::kDouble:
      if (!value.number()) return WrongType(field);
      writer->add_double(number, *value.number());
      return Ok();
    case FieldKind::kText:
      if (value.string() == nullptr) return WrongType(field);
      writer->add_string(number, *value.string());
      return Ok();
    case FieldKind::kBytes:
      if (value.string() == nullptr) return WrongType(field);
      writer->add_bytes(number, *value.string());
      return Ok();
    case FieldKind::kWord: {
      if (value.string() == nullptr) return WrongType(field);
      const auto at = std::find(field.words.begin(), field.words.end(), *value.string());
      if (value.string()->empty() || at == field.words.end()) return WrongType(field);
      writer->add_enum(number, static_cast<int32_t>(at - field.words.begin()));
      return Ok();
    }
    case FieldKind::kMessage: {
      // On its own first: protozero leaves out a message within a message if it is empty.
      std::string inner;
      protozero::pbf_writer inner_writer(inner);
      TRY(WriteFields(value, *field.message, &inner_writer)
              .Context("'" + std::string(field.name) + "'"));
      writer->add_message(number, inner);
      return Ok();
    }
  }
  return Ok();
}

Status WriteField(const Json& value, const MessageField& field, protozero::pbf_writer* writer) {
  if (field.count == FieldCount::kOne) return WriteValue(value, field, field.number, writer);
  if (field.count == FieldCount::kList) {
    if (value.array() == nullptr) return WrongType(field);
    for (const Json& one : *value.array()) TRY(WriteValue(one, field, field.number, writer));
    return Ok();
  }
  if (value.object() == nullptr) return WrongType(field);
  for (const auto& [key, one] : *value.object()) {
    protozero::pbf_writer entry(*writer, field.number);
    entry.add_string(kMapKey, key);
    TRY(WriteValue(one, field, kMapValue, &entry));
  }
  return Ok();
}

Status WriteFields(const Json& json, const MessageShape& shape, protozero::pbf_writer* writer) {
  if (json.is_null()) return Ok();
  if (json.object() == nullptr) return Invalid("it is not an object");
  for (const auto& [name, value] : *json.object()) {
    const auto field = std::find_if(shape.fields.begin(), shape.fields.end(),
                                    [&](const MessageField& one) { return one.name == name; });
    if (field == shape.fields.end()) return Invalid("there is no '" + name + "'");
    TRY(WriteField(value, *field, writer));
  }
  return Ok();
}

protozero::pbf_wire_type WireTypeOf(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBool:
    case FieldKind::kInteger:
    case FieldKind::kWord:
      return protozero::pbf_wire_type::varint;
    case FieldKind::kDouble:
      return protozero::pbf_wire_type::fixed64;
    case FieldKind::kText:
    case FieldKind::kBytes:
    case FieldKind::kMessage:
      return protozero::pbf_wire_type::length_delimited;
  }
  return protozero::pbf_wire_type::unknown;
}

Json WordOf(int32_t number, const MessageField& field) {
  const auto at = static_cast<size_t>(number);
  if (number < 0 || at >= field.words.size() || field.words[at].empty()) return int64_t{number};
  return field.words[at];
}

// Reads one message. Of malformed bytes, protozero throws its own exceptions; whether a field has
// the wire type that is read, it does not look.
class Reader {
 public:
  bool failed() const { return failed_; }

  Json ReadFields(protozero::pbf_reader reader, const MessageShape& shape, int depth) {
    std::vector<Json> values(shape.fields.size());
    std::vector<bool> there(shape.fields.size());
    if (depth > kDepthMax) failed_ = true;
    while (!failed_ && reader.next()) {
      const auto field =
          std::find_if(shape.fields.begin(), shape.fields.end(),
                       [&](const MessageField& one) { return one.number == reader.tag(); });
      if (field == shape.fields.end()) {
        reader.skip();
        continue;
      }
      const auto at = static_cast<size_t>(field - shape.fields.begin());
      there[at] = true;
      ReadField(&reader, *field, depth, &values[at]);
    }
    Json json = Json::EmptyObject();
    for (size_t i = 0; i < values.size(); ++i) {
      if (there[i]) json.Set(std::string(shape.fields[i].name), std::move(values[i]));
    }
    return json;
  }

 private:
  bool Has(const protozero::pbf_reader& reader, protozero::pbf_wire_type type) {
    if (reader.wire_type() != type) failed_ = true;
    return !failed_;
  }

  Json ReadValue(protozero::pbf_reader* reader, const MessageField& field, int depth) {
    if (!Has(*reader, WireTypeOf(field.kind))) return {};
    switch (field.kind) {
      case FieldKind::kBool:
        return reader->get_bool();
      case FieldKind::kInteger:
        return reader->get_int64();
      case FieldKind::kDouble:
        return reader->get_double();
      case FieldKind::kText:
      case FieldKind::kBytes:
        return reader->get_string();
      case FieldKind::kWord:
        return WordOf(reader->get_enum(), field);
      case FieldKind::kMessage:
        return ReadFields(reader->get_message(), *field.message, depth + 1);
    }
    return {};
  }

  void ReadEntry(protozero::pbf_reader entry, const MessageField& field, int depth, Json* map) {
    std::string key;
    Json value = field.kind == FieldKind::kMessage ? Json::EmptyObject() : Json("");
    while (!failed_ && entry.next()) {
      if (entry.tag() == kMapKey) {
        if (Has(entry, protozero::pbf_wire_type::length_delimited)) key = entry.get_string();
      } else if (entry.tag() == kMapValue) {
        value = ReadValue(&entry, field, depth);
      } else {
        entry.skip();
      }
    }
    // Of two entries with the same key, the first stays: a peer does not send them.
    if (map->Find(key) == nullptr) map->Set(std::move(key), std::move(value));
  }

  // Numbers of a list may come packed.
  void ReadPacked(protozero::pbf_reader* reader, const MessageField& field, Json* list) {
    if (field.kind == FieldKind::kInteger) {
      for (const int64_t number : reader->get_packed_int64()) list->Push(number);
    } else if (field.kind == FieldKind::kWord) {
      for (const int32_t number : reader->get_packed_enum()) list->Push(WordOf(number, field));
    } else {
      reader->skip();
    }
  }

  void ReadField(protozero::pbf_reader* reader, const MessageField& field, int depth, Json* into) {
    constexpr auto kDelimited = protozero::pbf_wire_type::length_delimited;
    if (field.count == FieldCount::kOne) {
      *into = ReadValue(reader, field, depth);
    } else if (field.count == FieldCount::kMap) {
      if (Has(*reader, kDelimited)) ReadEntry(reader->get_message(), field, depth, into);
    } else if (WireTypeOf(field.kind) != kDelimited && reader->wire_type() == kDelimited) {
      ReadPacked(reader, field, into);
    } else {
      into->Push(ReadValue(reader, field, depth));
    }
  }

  bool failed_ = false;
};

}  // namespace

Result<std::string> WriteMessage(const Json& json, const MessageShape& shape) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  TRY(WriteFields(json, shape, &writer));
  return bytes;
}

Result<Json> ReadMessage(std::string_view bytes, const MessageShape& shape) {
  const Error malformed = Invalid("it is not such a message of protocol buffers");
  try {
    Reader reader;
    Json json = reader.ReadFields(protozero::pbf_reader(bytes.data(), bytes.size()), shape, 0);
    if (reader.failed()) return malformed;
    return json;
  } catch (const std::exception&) {
    return malformed;
  }
}

void AppendVarint(uint32_t number, uint64_t value, std::string* message) {
  protozero::pbf_writer(*message).add_uint64(number, value);
}

void AppendFixed32(uint32_t number, uint32_t value, std::string* message) {
  protozero::pbf_writer(*message).add_fixed32(number, value);
}

void AppendFixed64(uint32_t number, uint64_t value, std::string* message) {
  protozero::pbf_writer(*message).add_fixed64(number, value);
}

void AppendPacked(uint32_t number, std::span<const uint64_t> values, std::string* message) {
  protozero::pbf_writer(*message).add_packed_fixed64(number, values.begin(), values.end());
}

void AppendBytes(uint32_t number, std::string_view bytes, std::string* message) {
  protozero::pbf_writer(*message).add_bytes(number, bytes.data(), bytes.size());
}

}  // namespace codec
