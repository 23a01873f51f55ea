// SPDX-License-Identifier: Apache-2.0
// Parses YAML into a small owned tree with positions. Only what a configuration file needs: one
// document, text keys, no duplicate keys, no anchors, aliases, merge keys or own tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/position.h"

namespace codec {

enum class YamlKind { kNull, kScalar, kSequence, kMapping };

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  Position at;
  std::string text;  // The text of a scalar.
  // True for a scalar in quotes or a block: text, never a number or a boolean.
  bool quoted = false;
  std::vector<YamlNode> items;  // The items of a sequence.
  // The entries of a mapping, in the file's order; keys are unique.
  std::vector<YamlEntry> entries;

  // Returns the value under `key`; null if there is none, or this is not a mapping.
  const YamlNode* Find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  Position at;  // The place of the key.
  YamlNode value;
};

struct YamlLimits {
  size_t bytes_max = 262144;
  size_t nodes_max = 100000;
  int depth_max = 32;
  bool nul = false;  // A text may have a NUL; elsewhere, what is taken for it could end there.
};

// Reads one document; an empty file is a kNull node. Fails with kInvalid and "file:line:col: error:
// what" on everything that is not YAML, is not UTF-8, or exceeds `limits`.
Result<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                           const YamlLimits& limits = {});

// Returns "a mapping", "a list", "text" or "nothing", for messages about what was found.
std::string_view DescribeKind(const YamlNode& node);

// Returns a plain scalar as YAML 1.2's core schema reads it; nullopt if it is something else.
std::optional<bool> YamlBool(const YamlNode& node);
std::optional<uint64_t> YamlUnsigned(const YamlNode& node);  // Decimal digits only.

// Returns whether a plain scalar is a number or a boolean to that schema, and so no text.
bool IsYamlNumberOrBool(const YamlNode& node);

// Returns the error of kInvalid for something wrong in a file that a person wrote: "file:line:col:
// error: what".
Error InvalidAt(const std::string& file, Position at, std::string_view what,
                std::string_view hint = {});

}  // namespace codec
