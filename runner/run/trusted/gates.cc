// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/gates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "change/capture.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "codec/text/quantity.h"

namespace run {
namespace {

using codec::YamlEntry;
using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

Result<std::vector<change::PathRule>> ParsePaths(const YamlFields& fields, ConfigReader* reader) {
  std::vector<change::PathRule> rules;
  const YamlNode* paths = fields.Find("paths");
  if (paths == nullptr) return rules;
  if (paths->kind != YamlKind::kMapping) {
    Error error = fields.WrongType("paths", "a mapping of patterns to actions");
    error.hint = "deploy/: refuse";
    return error;
  }
  static constexpr std::pair<std::string_view, change::PathAction> kActions[] = {
      {"refuse", change::PathAction::kRefuse},
      {"warn", change::PathAction::kWarn},
      {"allow", change::PathAction::kAllow}};
  for (const YamlEntry& entry : paths->entries) {
    const auto* action =
        std::find_if(std::begin(kActions), std::end(kActions), [&](const auto& known) {
          return entry.value.kind == YamlKind::kScalar && entry.value.text == known.first;
        });
    if (action == std::end(kActions)) {
      reader->Keep(Status(codec::InvalidAt(
          reader->file(), entry.value.at, "the action for a path must be refuse, warn or allow",
          codec::NearestName(entry.value.text, {"refuse", "warn", "allow"}))));
      continue;
    }
    auto rule = reader->Keep(ParsePath(*reader, entry.key, action->second, entry.at));
    if (rule) rules.push_back(*std::move(rule));
  }
  return rules;
}

// Parses a limit: it may be at most what the capture holds and the report can be read back with.
Result<int64_t> ParseLimit(const YamlFields& fields, std::string_view key) {
  constexpr change::CaptureLimits kCapture;
  const std::string& text = fields.Find(key)->text;
  const bool files = key == "files";
  Result<int64_t> limit = files ? codec::ParseCount(text) : codec::ParseSize(text);
  const int64_t most = files ? kCapture.files_max : kCapture.patch_bytes_max;
  if (limit.ok() && limit.value() > 0 && limit.value() <= most) return limit;
  return files ? fields.Invalid(key,
                                "a limit must be a whole number from 1 to " + std::to_string(most))
               : fields.Invalid(key, "a limit must be a size of at most " + codec::RenderSize(most),
                                codec::RenderSize(most));
}

}  // namespace

Result<Gates> ParseGates(const YamlNode& node, ConfigReader* reader) {
  Gates gates;
  YamlFields fields =
      TRY(reader->Open(node, "gates", {"paths", "files", "bytes"}, {"files", "bytes"}));
  auto rules = reader->Keep(ParsePaths(fields, reader));
  if (rules) gates.paths = *std::move(rules);
  for (const YamlEntry& entry : fields.entries()) {
    if ((entry.key != "files" && entry.key != "bytes") || codec::IsEmpty(entry.value)) continue;
    int64_t& limit = entry.key == "files" ? gates.files : gates.bytes;
    limit = reader->Keep(ParseLimit(fields, entry.key)).value_or(0);
  }
  return gates;
}

Gates Merge(Gates config, const Gates& task) {
  config.paths.insert(config.paths.end(), task.paths.begin(), task.paths.end());
  if (task.files != 0) config.files = task.files;
  if (task.bytes != 0) config.bytes = task.bytes;
  return config;
}

Result<change::PathRule> ParsePath(const ConfigReader& reader, std::string_view pattern,
                                   change::PathAction action, codec::Position at) {
  Result<change::PathRule> rule = change::PathRule::Parse(pattern, action);
  if (rule.ok()) return rule;
  return codec::InvalidAt(reader.file(), at, rule.error().what);
}

}  // namespace run
