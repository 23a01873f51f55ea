// SPDX-License-Identifier: Apache-2.0
#include "policy/load/fields.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlNode;

constexpr size_t kErrorsMax = 100;  // Finding the nearest key for each of many is not free.

}  // namespace

void Reader::KeepError(Error error) {
  if (errors.size() >= kErrorsMax) return;
  for (const codec::Position& at : misread_) {
    if (error.place.line == at.line && error.place.column == at.column) return;
  }
  errors.push_back(std::move(error));
}

void Reader::KeepUnknownKey(codec::Position mapping, Error error) {
  if (errors.size() < kErrorsMax) errors.push_back(std::move(error));
  misread_.push_back(mapping);
}

Result<Fields> Fields::Open(Reader* reader, const YamlNode& node, Section section) {
  TRY(codec::CheckMapping(reader->file, node, SectionName(section)));
  for (const YamlEntry& entry : node.entries) {
    if (reader->errors.size() >= kErrorsMax) break;  // The errors so far make the file invalid.
    const KeySpec* key = FindKey(section, entry.key);
    if (key == nullptr) {
      std::vector<std::string_view> keys;
      for (const KeySpec& one : PolicyKeys()) {
        if (one.section == section) keys.push_back(one.name);
      }
      reader->KeepUnknownKey(node.at,
                             codec::UnknownKey(reader->file, entry, SectionName(section), keys));
    } else if (codec::IsEmpty(entry.value) && !MayBeEmpty(*key)) {
      reader->KeepError(codec::EmptyValue(reader->file, entry));
    }
  }
  return Fields(reader->file, node, codec::Blanks::kTrimmed);
}

bool Fields::Has(std::string_view key) const {
  const YamlNode* value = Find(key);
  return value != nullptr && !codec::IsEmpty(*value) && codec::YamlBool(*value) != false;
}

}  // namespace policy
