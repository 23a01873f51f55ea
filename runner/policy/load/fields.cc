// SPDX-License-Identifier: Apache-2.0
#include "policy/load/fields.h"

#include <algorithm>
#include <cctype>

#include "base/ascii.h"
#include "codec/text/nearest.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

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

// What to write in place of a key that `section` does not have.
std::string KeyHint(Section section, std::string_view name) {
  std::vector<std::string_view> names;
  for (const KeySpec& key : PolicyKeys()) {
    if (key.section == section) names.push_back(key.name);
  }
  std::string nearest = codec::NearestName(name, names);
  if (!nearest.empty()) return "write '" + nearest + ":'";
  // A name cut short or spelt out ("filesystem") is too many edits away.
  for (std::string_view candidate : names) {
    if (name.size() >= 4 && (candidate.starts_with(name) || name.starts_with(candidate))) {
      return "write '" + std::string(candidate) + ":'";
    }
  }
  return OneOf(names);
}

constexpr size_t kErrorsMax = 100;  // Finding the nearest key for each of many is not free.

}  // namespace

void Reader::KeepError(Error error) {
  if (errors.size() >= kErrorsMax) return;
  for (const std::string& place : misread_) {
    if (error.what.starts_with(place)) return;
  }
  errors.push_back(std::move(error));
}

void Reader::KeepUnknownKey(codec::Position mapping, Error error) {
  if (errors.size() < kErrorsMax) errors.push_back(std::move(error));
  misread_.push_back(codec::Locate(file, mapping) + ": ");
}

Result<Fields> Fields::Open(Reader* reader, const YamlNode& node, Section section) {
  if (node.kind != YamlKind::kMapping) {
    return reader->Invalid(node.at, std::string(SectionName(section)) + " must be a mapping, not " +
                                        std::string(codec::DescribeKind(node)));
  }
  for (const YamlEntry& entry : node.entries) {
    if (reader->errors.size() >= kErrorsMax) break;  // What is there makes the file invalid.
    const KeySpec* key = FindKey(section, entry.key);
    if (key == nullptr) {
      std::string what = "unknown key '" + entry.key + "' in " + std::string(SectionName(section));
      reader->KeepUnknownKey(node.at, reader->Invalid(entry.at, what, KeyHint(section, entry.key)));
    } else if (IsEmpty(entry.value) && !MayBeEmpty(*key)) {
      reader->KeepError(reader->Invalid(entry.value.at.line > 0 ? entry.value.at : entry.at,
                                        "'" + entry.key + "' is empty",
                                        "write a value, or remove '" + entry.key + "'"));
    }
  }
  return Fields(reader, &node);
}

codec::Position Fields::At(std::string_view key) const {
  for (const YamlEntry& entry : node_->entries) {
    if (entry.key == key) return entry.value.at.line > 0 ? entry.value.at : entry.at;
  }
  return node_->at;
}

Error Fields::WrongType(std::string_view key, std::string_view expected) const {
  const YamlNode* value = Find(key);
  std::string found = value == nullptr ? "nothing" : std::string(codec::DescribeKind(*value));
  return reader_->Invalid(
      At(key), "'" + std::string(key) + "' must be " + std::string(expected) + ", not " + found);
}

Result<std::string> Fields::Text(std::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return std::string();
  std::optional<std::string> text = ScalarText(*value);
  if (!text) return WrongType(key, "text");
  return *text;
}

bool Fields::Has(std::string_view key) const {
  const YamlNode* value = Find(key);
  return value != nullptr && !IsEmpty(*value) && codec::YamlBool(*value) != false;
}

Result<uint32_t> Fields::Number(std::string_view key, uint32_t fallback, uint32_t least,
                                uint32_t most) const {
  const YamlNode* value = Find(key);
  if (value == nullptr || value->kind == YamlKind::kNull) return fallback;
  std::optional<uint64_t> number = codec::YamlUnsigned(*value);
  if (number && *number >= least && *number <= most) return static_cast<uint32_t>(*number);
  return reader_->Invalid(At(key),
                          "'" + std::string(key) + "' must be a number from " +
                              std::to_string(least) + " to " + std::to_string(most),
                          "write '" + std::string(key) + ": " + std::to_string(fallback) + "'");
}

Result<bool> Fields::Boolean(std::string_view key, bool fallback) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return fallback;
  std::optional<bool> parsed = codec::YamlBool(*value);
  if (!parsed) {
    return reader_->Invalid(
        At(key), "'" + std::string(key) + "' must be true or false",
        "write '" + std::string(key) + ": true' or '" + std::string(key) + ": false'");
  }
  return *parsed;
}

Result<const YamlNode*> Fields::List(std::string_view key) const {
  const YamlNode* value = Find(key);
  if (value == nullptr) return static_cast<const YamlNode*>(nullptr);
  if (value->kind != YamlKind::kSequence) return WrongType(key, "a list");
  return value;
}

Result<std::vector<std::string>> Fields::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const YamlNode* list = TRY(List(key));
  if (list == nullptr) return texts;
  for (const YamlNode& item : list->items) {
    std::optional<std::string> text = ScalarText(item);
    if (!text) {
      return reader_->Invalid(item.at, "an entry of '" + std::string(key) + "' must be text, not " +
                                           std::string(codec::DescribeKind(item)));
    }
    texts.push_back(*text);
  }
  return texts;
}

Result<std::optional<size_t>> Fields::Choice(std::string_view key,
                                             const std::vector<std::string_view>& values,
                                             bool any_case) const {
  std::string text = TRY(Text(key));
  if (text.empty()) return std::optional<size_t>();
  std::string wanted = any_case ? ascii::LowerCase(text) : text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == wanted) return std::optional<size_t>(i);
  }
  return reader_->Invalid(
      At(key), "'" + text + "' is not a valid value for '" + std::string(key) + "'", OneOf(values));
}

std::optional<std::string> ScalarText(const YamlNode& node) {
  if (node.kind != YamlKind::kScalar) return std::nullopt;
  return std::string(ascii::Trimmed(node.text));
}

std::string OneOf(const std::vector<std::string_view>& values) {
  std::string text = "one of: ";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += values[i];
  }
  return text;
}

}  // namespace policy
