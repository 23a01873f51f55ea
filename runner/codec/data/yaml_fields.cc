// SPDX-License-Identifier: Apache-2.0
#include "codec/data/yaml_fields.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/text/nearest.h"

namespace codec {
namespace {

// Returns what to write in place of a key that `keys` do not have.
std::string KeyHint(std::string_view name, const std::vector<std::string_view>& keys) {
  std::string nearest = NearestName(name, keys);
  if (!nearest.empty()) return "write '" + nearest + ":'";
  // A name cut short or spelt out ("filesystem") is too many edits away.
  for (std::string_view candidate : keys) {
    if (name.size() >= 4 && (candidate.starts_with(name) || name.starts_with(candidate))) {
      return "write '" + std::string(candidate) + ":'";
    }
  }
  return OneOf(keys);
}

}  // namespace

Status CheckMapping(const std::string& file, const YamlNode& node, std::string_view what) {
  if (node.kind == YamlKind::kMapping) return Ok();
  return InvalidAt(
      file, node.at,
      std::string(what) + " must be a mapping, not " + std::string(DescribeKind(node)));
}

Error UnknownKey(const std::string& file, const YamlEntry& entry, std::string_view what,
                 const std::vector<std::string_view>& keys) {
  return InvalidAt(file, entry.at, "unknown key '" + entry.key + "' in " + std::string(what),
                   KeyHint(entry.key, keys));
}

bool IsEmpty(const YamlNode& value) {
  switch (value.kind) {
    case YamlKind::kNull:
      return true;
    case YamlKind::kScalar:
      return ascii::Trimmed(value.text).empty();
    case YamlKind::kSequence:
      return value.items.empty();
    case YamlKind::kMapping:
      return value.entries.empty();
  }
  return false;
}

Error EmptyValue(const std::string& file, const YamlEntry& entry) {
  return InvalidAt(file, entry.value.at.line > 0 ? entry.value.at : entry.at,
                   "'" + entry.key + "' is empty", "write a value, or remove '" + entry.key + "'");
}

Result<YamlFields> YamlFields::Open(const std::string& file, const YamlNode& node,
                                    std::string_view what,
                                    const std::vector<std::string_view>& keys, Blanks blanks) {
  TRY(CheckMapping(file, node, what));
  for (const YamlEntry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      return UnknownKey(file, entry, what, keys);
    }
  }
  return YamlFields(file, node, blanks);
}

Status YamlFields::RefuseEmpty(const std::vector<std::string_view>& keys) const {
  for (const YamlEntry& entry : entries()) {
    bool asked = std::find(keys.begin(), keys.end(), entry.key) != keys.end();
    if (asked && IsEmpty(entry.value)) return EmptyValue(*file_, entry);
  }
  return Ok();
}

Error YamlFields::Invalid(std::string_view key, std::string_view what,
                          std::string_view hint) const {
  return InvalidAt(*file_, At(key), what, hint);
}

Result<std::string> YamlFields::RequiredText(std::string_view key, std::string_view hint) const {
  std::string text = TRY(Text(key));
  if (!ascii::Trimmed(text).empty()) return text;
  bool present = Find(key) != nullptr;
  return Invalid(key, "'" + std::string(key) + (present ? "' is empty" : "' is missing"), hint);
}

Position YamlFields::At(std::string_view key) const {
  for (const YamlEntry& entry : node_->entries) {
    if (entry.key == key) return entry.value.at.line > 0 ? entry.value.at : entry.at;
  }
  return node_->at;
}

Error YamlFields::WrongType(std::string_view key, std::string_view expected) const {
  const YamlNode* value = Find(key);
  std::string found = value == nullptr ? "nothing" : std::string(DescribeKind(*value));
  return Invalid(key,
                 "'" + std::string(key) + "' must be " + std::string(expected) + ", not " + found);
}

Result<std::string> YamlFields::Text(std::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return std::string();
  std::optional<std::string> text = ScalarText(*value, blanks_);
  if (!text) return WrongType(key, "text");
  return *text;
}

Result<uint32_t> YamlFields::Number(std::string_view key, uint32_t fallback, uint32_t least,
                                    uint32_t most) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return fallback;
  std::optional<uint64_t> number = YamlUnsigned(*value);
  if (number && *number >= least && *number <= most) return static_cast<uint32_t>(*number);
  return Invalid(key,
                 "'" + std::string(key) + "' must be a number from " + std::to_string(least) +
                     " to " + std::to_string(most),
                 "write '" + std::string(key) + ": " + std::to_string(fallback) + "'");
}

Result<bool> YamlFields::Boolean(std::string_view key, bool fallback) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return fallback;
  std::optional<bool> parsed = YamlBool(*value);
  if (!parsed) {
    return Invalid(key, "'" + std::string(key) + "' must be true or false",
                   "write '" + std::string(key) + ": true' or '" + std::string(key) + ": false'");
  }
  return *parsed;
}

Result<const YamlNode*> YamlFields::List(std::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return static_cast<const YamlNode*>(nullptr);
  if (value->kind != YamlKind::kSequence) return WrongType(key, "a list");
  return value;
}

Result<std::vector<std::string>> YamlFields::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const YamlNode* list = TRY(List(key));
  if (list == nullptr) return texts;
  for (const YamlNode& item : list->items) {
    std::optional<std::string> text = ScalarText(item, blanks_);
    if (!text) {
      return InvalidAt(*file_, item.at,
                       "an entry of '" + std::string(key) + "' must be text, not " +
                           std::string(DescribeKind(item)));
    }
    texts.push_back(*text);
  }
  return texts;
}

Result<std::vector<std::string>> YamlFields::FilledTexts(std::string_view key) const {
  std::vector<std::string> texts = TRY(Texts(key));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) continue;
    return InvalidAt(*file_, Find(key)->items[i].at,
                     "an entry of '" + std::string(key) + "' is empty");
  }
  return texts;
}

Result<std::optional<size_t>> YamlFields::Choice(std::string_view key,
                                                 const std::vector<std::string_view>& values,
                                                 bool any_case) const {
  std::string text = TRY(Text(key));
  if (text.empty()) return std::optional<size_t>();
  std::string wanted = any_case ? ascii::LowerCase(text) : text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == wanted) return std::optional<size_t>(i);
  }
  return Invalid(key, "'" + text + "' is not a valid value for '" + std::string(key) + "'",
                 OneOf(values));
}

std::optional<std::string> ScalarText(const YamlNode& node, Blanks blanks) {
  if (node.kind != YamlKind::kScalar) return std::nullopt;
  return blanks == Blanks::kKept ? node.text : std::string(ascii::Trimmed(node.text));
}

std::string OneOf(const std::vector<std::string_view>& values) {
  std::string text = "one of: ";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += values[i];
  }
  return text;
}

}  // namespace codec
