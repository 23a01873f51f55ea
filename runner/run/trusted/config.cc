// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/config.h"

#include <algorithm>

#include "base/log.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "codec/text/quantity.h"

namespace run {
namespace {

constexpr size_t kConfigBytesMax = 262144;
constexpr size_t kNamedFileBytesMax = size_t{1} << 20;

using codec::YamlEntry;
using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

Result<int64_t> ParseCount(const YamlFields& fields, std::string_view key) {
  Result<int64_t> count = codec::ParseCount(fields.Find(key)->text);
  if (!count.ok()) return fields.Invalid(key, "a limit must be a whole number of at least 1");
  return count;
}

Result<double> ParseCost(const YamlFields& fields, std::string_view key) {
  Result<double> dollars = codec::ParseDollars(fields.Find(key)->text);
  if (!dollars.ok())
    return fields.Invalid(key, "a cost limit must be an amount of US dollars", "5");
  return dollars;
}

Status ParseLimits(const YamlNode& node, const std::string& file, Config* config) {
  YamlFields fields = TRY(YamlFields::Open(
      file, node, "limits", {"max_tokens", "max_cost", "max_requests", "requests_per_minute"}));
  for (const YamlEntry& entry : fields.entries()) {
    if (entry.key == "max_cost") {
      config->max_cost_usd = TRY(ParseCost(fields, entry.key));
      continue;
    }
    int64_t count = TRY(ParseCount(fields, entry.key));
    if (entry.key == "max_tokens") config->max_tokens = count;
    if (entry.key == "max_requests") config->max_requests = count;
    if (entry.key == "requests_per_minute") config->requests_per_minute = count;
  }
  return Ok();
}

Status ParseImages(const YamlNode& node, const std::string& file, const image::TrustFile& read,
                   Config* config) {
  YamlFields fields =
      TRY(YamlFields::Open(file, node, "images", {"trust", "trusted_root", "mirrors"}));
  config->trust = TRY(image::ParseTrust(fields, read));
  config->mirrors = TRY(fields.FilledTexts("mirrors"));
  return Ok();
}

// `gates.paths`: pattern -> refuse, warn or allow.
Status ParseGates(const YamlNode& node, const std::string& file, Config* config) {
  YamlFields fields = TRY(YamlFields::Open(file, node, "gates", {"paths"}));
  const YamlNode* paths = fields.Find("paths");
  if (paths == nullptr) return Ok();
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
      return codec::InvalidAt(file, entry.value.at,
                              "the action for a path must be refuse, warn or allow",
                              codec::NearestName(entry.value.text, {"refuse", "warn", "allow"}));
    }
    Result<change::PathRule> rule = change::PathRule::Parse(entry.key, action->second);
    if (!rule.ok()) return codec::InvalidAt(file, entry.at, rule.error().what);
    config->paths.push_back(std::move(rule).value());
  }
  return Ok();
}

// `require`: what a run must have, by the names of run.json's controls.
Result<std::vector<std::string>> ParseRequired(const YamlFields& fields) {
  static const std::vector<std::string_view> kControls = {
      "namespaces", "network", "capture", "capabilities", "seccomp",
      "landlock",   "disk",    "memory",  "cpu",          "pids"};
  std::vector<std::string> names = TRY(fields.FilledTexts("require"));
  for (const std::string& name : names) {
    if (std::find(kControls.begin(), kControls.end(), name) != kControls.end()) continue;
    return fields.Invalid("require", "no control is called '" + name + "'",
                          codec::NearestName(name, kControls));
  }
  return names;
}

}  // namespace

Result<Config> ParseConfig(std::string_view text, const std::string& file,
                           const image::TrustFile& read) {
  Config config;
  YamlNode root = TRY(codec::ParseYaml(text, file));
  if (root.kind == YamlKind::kNull) {
    return codec::InvalidAt(file, {1, 1}, "the configuration is empty", "remove the file");
  }
  YamlFields fields = TRY(
      YamlFields::Open(file, root, "the configuration",
                       {"limits", "models", "prices", "ecosystems", "images", "gates", "require"}));
  TRY(fields.RefuseEmpty({"limits", "models"}));  // No model listed would be any model.
  config.models = TRY(fields.FilledTexts("models"));
  config.ecosystems = TRY(fields.FilledTexts("ecosystems"));
  config.require = TRY(ParseRequired(fields));
  if (const YamlNode* limits = fields.Find("limits")) TRY(ParseLimits(*limits, file, &config));
  if (const YamlNode* prices = fields.Find("prices")) {
    config.prices = TRY(gateway::PriceList::FromYaml(*prices, file));
  }
  if (const YamlNode* gates = fields.Find("gates")) TRY(ParseGates(*gates, file, &config));
  if (const YamlNode* images = fields.Find("images")) {
    TRY(ParseImages(*images, file, read, &config));
  }
  return config;
}

Result<Config> LoadConfig(const change::Repository* repository, const std::string& checkout,
                          const TrustedRef& ref) {
  TrustedFile file = TRY(ReadTrustedFile(repository, checkout, ref, kConfigPath, kConfigBytesMax));
  if (file.worktree_differs) {
    logging::Warn("worktree configuration ignored: commit it, or use --policy-ref worktree",
                  {{"file", kConfigPath}});
  }
  if (!file.text) {
    TRY(CheckSpelling(repository, checkout, ref, kConfigPath));
    return Config{};
  }
  // What the file names comes from the same commit.
  image::TrustFile read = [&](const std::string& path) -> Result<std::string> {
    TrustedFile named = TRY(ReadTrustedFile(repository, checkout, ref, path, kNamedFileBytesMax));
    if (named.text) return *std::move(named.text);
    return Error{Code::kNotFound, "there is no " + path + " at " + ref.ref};
  };
  return ParseConfig(*file.text, kConfigPath, read);
}

}  // namespace run
