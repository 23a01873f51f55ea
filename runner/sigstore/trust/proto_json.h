// SPDX-License-Identifier: Apache-2.0
// proto3's JSON, parsed strictly: exact names in camelCase, no unknown names, null for absent
// values. Everything that Go's protojson refuses is refused; its second spellings (snake_case
// names, URL-safe base64) occur in no bundle and are refused too.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"
#include "sigstore/trust/checked.h"

namespace sigstore {

// Decodes standard base64 in which line ends may stand anywhere, as in PEM.
Checked<std::string> DecodeBytes(std::string_view base64, const std::string& where);

// Does what ParseJson does, but fails with kDuplicateKey, else kParse.
Checked<codec::Json> ReadJson(std::string_view text, const std::string& where, size_t bytes_max);

// One message. Borrows the JSON.
class Message {
 public:
  // Fails with kParse if `json` is not an object, with kUnknownField for a member that is not in
  // `fields`. `where` is for details: "tlogEntries[0]".
  static Checked<Message> Read(const codec::Json& json, std::string where,
                               std::initializer_list<std::string_view> fields);

  const std::string& where() const { return where_; }
  bool Has(std::string_view name) const;

  // Each fails with kParse for another type. For an absent or empty member these three fail with
  // kMissingField.
  Checked<std::string> Text(std::string_view name) const;
  Checked<std::string> Bytes(std::string_view name) const;  // Also kBadBase64.
  Checked<Message> Child(std::string_view name,
                         std::initializer_list<std::string_view> fields) const;
  // These give the default instead, since proto3 leaves defaults out: 0, "", no elements.
  Checked<std::string> OptionalText(std::string_view name) const;
  Checked<int64_t> Integer(std::string_view name) const;  // A number, or one in a string.
  Checked<std::vector<Message>> Children(std::string_view name,
                                         std::initializer_list<std::string_view> fields) const;
  Checked<std::vector<std::string>> BytesList(std::string_view name) const;

 private:
  Message(const codec::Json* json, std::string where) : json_(json), where_(std::move(where)) {}
  // Returns nullptr if it is absent or null.
  const codec::Json* Find(std::string_view name) const;
  std::string Place(std::string_view name) const;
  Rejection Wrong(std::string_view name, std::string_view type) const;
  Rejection Missing(std::string_view name) const;
  Checked<const codec::Json::Array*> List(std::string_view name) const;

  const codec::Json* json_;
  std::string where_;
};

}  // namespace sigstore
