// SPDX-License-Identifier: Apache-2.0
// One mapping of a policy file, read against the schema: unknown keys are refused, values are
// typed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"
#include "policy/load/parse.h"
#include "policy/model/schema.h"

namespace policy {

// What parsing one file needs everywhere: its name for messages, where warnings go, and the errors
// that did not stop it. A file with any is not valid (ParsePolicyTree): parsing goes on behind one
// only to find the others.
struct Reader {
  std::string file;
  std::vector<Warning> warnings;
  std::vector<Error> errors;

  // The value, or nothing after keeping the error. For parts of a file that stand beside others.
  template <typename T>
  std::optional<T> Keep(Result<T> part) {
    if (part.ok()) return std::move(part).value();
    KeepError(std::move(part).error());
    return std::nullopt;
  }
  // What is missing from a mapping with an unknown key is not told: the key is what was meant.
  void KeepError(Error error);
  // A mapping at this place has a key that is not known.
  void KeepUnknownKey(codec::Position mapping, Error error);

  Error Invalid(codec::Position at, std::string_view what, std::string_view hint = {}) const {
    return codec::InvalidAt(file, at, what, hint);
  }
  void Warn(codec::Position at, std::string what) { warnings.push_back({at, std::move(what)}); }

 private:
  std::vector<std::string> misread_;  // How errors about such mappings begin.
};

// Borrows the node and the reader. Every getter gives the fallback for an absent key, and kInvalid
// with the place for a value of the wrong type.
class Fields {
 public:
  // Fails when `node` is not a mapping. Keeps an error for each key that the section does not know
  // (the nearest one is the hint), or that is empty where the schema refuses that.
  static Result<Fields> Open(Reader* reader, const codec::YamlNode& node, Section section);

  codec::Position at() const { return node_->at; }
  // Where `key` stands, or the mapping itself.
  codec::Position At(std::string_view key) const;
  const codec::YamlNode* Find(std::string_view key) const { return node_->Find(key); }
  // False when `key` is absent, or asks for nothing: null, false, empty text, an empty list or
  // mapping. OpenShell does not tell these apart either.
  bool Has(std::string_view key) const;

  // Text without surrounding blanks. Plain numbers and booleans are taken as they are written.
  Result<std::string> Text(std::string_view key) const;
  Result<bool> Boolean(std::string_view key, bool fallback) const;
  // A whole number from `least` to `most`.
  Result<uint32_t> Number(std::string_view key, uint32_t fallback, uint32_t least,
                          uint32_t most) const;
  Result<std::vector<std::string>> Texts(std::string_view key) const;
  // Null when the key is absent; fails when it is no list.
  Result<const codec::YamlNode*> List(std::string_view key) const;
  // The index into `values`, in any case of letters when `any_case`; nothing when absent or empty.
  Result<std::optional<size_t>> Choice(std::string_view key,
                                       const std::vector<std::string_view>& values,
                                       bool any_case = false) const;

  Error WrongType(std::string_view key, std::string_view expected) const;

 private:
  Fields(Reader* reader, const codec::YamlNode* node) : reader_(reader), node_(node) {}

  Reader* reader_;
  const codec::YamlNode* node_;
};

// The text of a scalar without surrounding blanks; nothing for what is no scalar.
std::optional<std::string> ScalarText(const codec::YamlNode& node);
// "one of: a, b, c".
std::string OneOf(const std::vector<std::string_view>& values);

}  // namespace policy
