// SPDX-License-Identifier: Apache-2.0
// One mapping of a configuration file, read strictly: unknown keys are refused, values are
// typed, and every error has a position and a hint. Names of keys are in 'single quotes'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml.h"

namespace codec {

// Blanks around text, which only quotes or a block can hold.
enum class Blanks { kKept, kTrimmed };

// Borrows the node and the file's name. Every getter gives the fallback for an absent key, and
// fails with kInvalid and the place for a value of the wrong type, as null always is.
class YamlFields {
 public:
  // Fails when `node` is not a mapping, or has a key that is not in `keys`. `what` names the
  // mapping in messages: "a credential".
  static Result<YamlFields> Open(const std::string& file, const YamlNode& node,
                                 std::string_view what, const std::vector<std::string_view>& keys,
                                 Blanks blanks = Blanks::kKept);

  const std::string& file() const { return *file_; }
  Position at() const { return node_->at; }
  const std::vector<YamlEntry>& entries() const { return node_->entries; }
  // Returns where `key` stands, or the mapping itself if it has no such key.
  Position At(std::string_view key) const;
  const YamlNode* Find(std::string_view key) const { return node_->Find(key); }

  // Plain numbers and booleans are taken as they are written.
  Result<std::string> Text(std::string_view key) const;
  // Fails for an absent key, too, and for text that is empty or blank.
  Result<std::string> RequiredText(std::string_view key, std::string_view hint = {}) const;
  Result<bool> Boolean(std::string_view key, bool fallback) const;
  // Returns a whole number from `least` to `most`.
  Result<uint32_t> Number(std::string_view key, uint32_t fallback, uint32_t least,
                          uint32_t most) const;
  Result<std::vector<std::string>> Texts(std::string_view key) const;
  // Fails for an entry that is empty, too.
  Result<std::vector<std::string>> FilledTexts(std::string_view key) const;
  // Returns null if the key is absent; fails if it is not a list.
  Result<const YamlNode*> List(std::string_view key) const;
  // Returns the index into `values`, ignoring the case of letters if `any_case`; nullopt if absent
  // or empty.
  Result<std::optional<size_t>> Choice(std::string_view key,
                                       const std::vector<std::string_view>& values,
                                       bool any_case = false) const;

  // Fails for the first of `keys` that is there with a value that is empty.
  Status RefuseEmpty(const std::vector<std::string_view>& keys) const;

  Error WrongType(std::string_view key, std::string_view expected) const;
  // Returns an error about the value of `key`, or about the mapping if it has none.
  Error Invalid(std::string_view key, std::string_view what, std::string_view hint = {}) const;

 protected:
  YamlFields(const std::string& file, const YamlNode& node, Blanks blanks)
      : file_(&file), node_(&node), blanks_(blanks) {}

 private:
  const std::string* file_;
  const YamlNode* node_;
  Blanks blanks_;
};

// Fails for a node that is not a mapping: "a binary must be a mapping, not text".
Status CheckMapping(const std::string& file, const YamlNode& node, std::string_view what);
// Returns the error "unknown key 'hots' in an endpoint"; the hint is the nearest of `keys`, or all
// of them.
Error UnknownKey(const std::string& file, const YamlEntry& entry, std::string_view what,
                 const std::vector<std::string_view>& keys);
// True for null, blank text, and a list or mapping without an entry.
bool IsEmpty(const YamlNode& value);
Error EmptyValue(const std::string& file, const YamlEntry& entry);

// Returns the text of a scalar; nullopt if it is not a scalar.
std::optional<std::string> ScalarText(const YamlNode& node, Blanks blanks = Blanks::kTrimmed);
// Returns text such as "one of: a, b, c".
std::string OneOf(const std::vector<std::string_view>& values);

}  // namespace codec
