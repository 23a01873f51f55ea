// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/proto_json.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "codec/text/base64.h"

namespace sigstore {

Checked<std::string> DecodeBytes(std::string_view base64, const std::string& where) {
  std::string text(base64);
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  std::optional<std::string> bytes = codec::DecodeBase64(text);
  if (!bytes) return Rejection{Reason::kBadBase64, where + " is not base64"};
  return *std::move(bytes);
}

Checked<codec::Json> ReadJson(std::string_view text, const std::string& where, size_t bytes_max) {
  // A bill of materials names tens of thousands of files, each with a dozen values.
  Result<codec::Json> json =
      codec::ParseJson(text, {.bytes_max = bytes_max, .depth_max = 64, .values_max = 1000000});
  if (json.ok()) return std::move(json).value();
  const bool twice = json.error().kind == ErrorKind::kNameTwice;
  return Rejection{twice ? Reason::kDuplicateKey : Reason::kParse,
                   where + ": " + json.error().what};
}

Checked<Message> Message::Read(const codec::Json& json, std::string where,
                               std::initializer_list<std::string_view> fields) {
  const codec::Json::Object* members = json.object();
  if (members == nullptr) return Rejection{Reason::kParse, where + " is not an object"};
  for (const codec::Json::Member& member : *members) {
    if (std::find(fields.begin(), fields.end(), member.first) == fields.end()) {
      return Rejection{Reason::kUnknownField, where + " has a member '" + member.first + "'"};
    }
  }
  return Message(&json, std::move(where));
}

const codec::Json* Message::Find(std::string_view name) const {
  const codec::Json* found = json_->Find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string Message::Place(std::string_view name) const { return where_ + "." + std::string(name); }

Rejection Message::Wrong(std::string_view name, std::string_view type) const {
  return {Reason::kParse, Place(name) + " is not " + std::string(type)};
}

Rejection Message::Missing(std::string_view name) const {
  return {Reason::kMissingField, Place(name) + " is missing"};
}

bool Message::Has(std::string_view name) const { return Find(name) != nullptr; }

Checked<std::string> Message::OptionalText(std::string_view name) const {
  const codec::Json* found = Find(name);
  if (found == nullptr) return std::string();
  const std::string* text = found->string();
  if (text == nullptr) return Wrong(name, "a string");
  return *text;
}

Checked<std::string> Message::Text(std::string_view name) const {
  std::string text = TRY(OptionalText(name));
  if (text.empty()) return Missing(name);
  return text;
}

Checked<std::string> Message::Bytes(std::string_view name) const {
  std::string text = TRY(Text(name));
  return DecodeBytes(text, Place(name));
}

Checked<Message> Message::Child(std::string_view name,
                                std::initializer_list<std::string_view> fields) const {
  const codec::Json* found = Find(name);
  if (found == nullptr) return Missing(name);
  return Read(*found, Place(name), fields);
}

Checked<int64_t> Message::Integer(std::string_view name) const {
  const codec::Json* found = Find(name);
  if (found == nullptr) return int64_t{0};
  if (std::optional<int64_t> number = found->integer()) return *number;
  const std::string* text = found->string();
  if (text == nullptr) return Wrong(name, "a whole number");
  int64_t number = 0;
  const char* end = text->data() + text->size();
  auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end) return Wrong(name, "a whole number");
  return number;
}

Checked<const codec::Json::Array*> Message::List(std::string_view name) const {
  const codec::Json* found = Find(name);
  if (found == nullptr) return nullptr;
  const codec::Json::Array* list = found->array();
  if (list == nullptr) return Wrong(name, "a list");
  return list;
}

Checked<std::vector<Message>> Message::Children(
    std::string_view name, std::initializer_list<std::string_view> fields) const {
  const codec::Json::Array* list = TRY(List(name));
  std::vector<Message> children;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Message child = TRY(Read((*list)[i], Place(name) + "[" + std::to_string(i) + "]", fields));
    children.push_back(std::move(child));
  }
  return children;
}

Checked<std::vector<std::string>> Message::BytesList(std::string_view name) const {
  const codec::Json::Array* list = TRY(List(name));
  std::vector<std::string> values;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string* text = (*list)[i].string();
    if (text == nullptr) return Wrong(name, "a list of strings");
    std::string bytes = TRY(DecodeBytes(*text, Place(name) + "[" + std::to_string(i) + "]"));
    values.push_back(std::move(bytes));
  }
  return values;
}

}  // namespace sigstore
