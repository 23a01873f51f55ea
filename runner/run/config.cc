// SPDX-License-Identifier: Apache-2.0
#include "run/config.h"

#include <algorithm>

#include "base/log.h"
#include "codec/data/yaml.h"
#include "codec/text/nearest.h"
#include "codec/text/quantity.h"

namespace run {
namespace {

constexpr size_t kConfigBytesMax = 262144;
constexpr size_t kNamedFileBytesMax = size_t{1} << 20;

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

// One mapping: every key in it must be known, the nearest known one is the hint.
Status CheckKeys(const YamlNode& node, const std::string& file, const char* what,
                 const std::vector<std::string_view>& known) {
  if (node.kind != YamlKind::kMapping) {
    return codec::InvalidAt(file, node.at, std::string(what) + " must be a mapping");
  }
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    return codec::InvalidAt(file, entry.at, "unknown key '" + entry.key + "' in " + what,
                            codec::NearestName(entry.key, known));
  }
  return Ok();
}

Result<int64_t> ParseCount(const YamlNode& node, const std::string& file) {
  Result<int64_t> count = codec::ParseCount(node.text);
  if (node.kind != YamlKind::kScalar || !count.ok()) {
    return codec::InvalidAt(file, node.at, "a limit must be a whole number of at least 1");
  }
  return count;
}

Result<double> ParseCost(const YamlNode& node, const std::string& file) {
  Result<double> dollars = codec::ParseDollars(node.text);
  if (node.kind != YamlKind::kScalar || !dollars.ok()) {
    return codec::InvalidAt(file, node.at, "a cost limit must be an amount of US dollars", "5");
  }
  return dollars;
}

Result<std::vector<std::string>> ParseTexts(const YamlNode& node, const std::string& file,
                                            const char* what) {
  std::vector<std::string> texts;
  if (node.kind != YamlKind::kSequence) {
    return codec::InvalidAt(file, node.at, std::string(what) + " must be a list of names");
  }
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlKind::kScalar || item.text.empty()) {
      return codec::InvalidAt(file, item.at, std::string(what) + " must be a list of names");
    }
    texts.push_back(item.text);
  }
  return texts;
}

// None listed would be any model.
Result<std::vector<std::string>> ParseModels(const YamlNode& node, const std::string& file) {
  std::vector<std::string> models = TRY(ParseTexts(node, file, "models"));
  if (!models.empty()) return models;
  return codec::InvalidAt(file, node.at, "models is empty", "name a model, or remove 'models'");
}

Status ParseLimits(const YamlNode& node, const std::string& file, Config* config) {
  TRY(CheckKeys(node, file, "limits",
                {"max_tokens", "max_cost", "max_requests", "requests_per_minute"}));
  if (node.entries.empty())
    return codec::InvalidAt(file, node.at, "limits is empty", "max_cost: 5");
  for (const YamlEntry& entry : node.entries) {
    if (entry.key == "max_cost") {
      config->max_cost_usd = TRY(ParseCost(entry.value, file));
      continue;
    }
    int64_t count = TRY(ParseCount(entry.value, file));
    if (entry.key == "max_tokens") config->max_tokens = count;
    if (entry.key == "max_requests") config->max_requests = count;
    if (entry.key == "requests_per_minute") config->requests_per_minute = count;
  }
  return Ok();
}

Status ParseImages(const YamlNode& node, const std::string& file, const image::TrustFile& read,
                   Config* config) {
  TRY(CheckKeys(node, file, "images", {"trust", "trusted_root", "mirrors"}));
  config->trust = TRY(image::ParseTrust(node.Find("trust"), node.Find("trusted_root"), file, read));
  if (const YamlNode* mirrors = node.Find("mirrors")) {
    config->mirrors = TRY(ParseTexts(*mirrors, file, "mirrors"));
  }
  return Ok();
}

// `gates.paths`: pattern -> refuse, warn or allow.
Status ParseGates(const YamlNode& node, const std::string& file, Config* config) {
  TRY(CheckKeys(node, file, "gates", {"paths"}));
  const YamlNode* paths = node.Find("paths");
  if (paths == nullptr) return Ok();
  if (paths->kind != YamlKind::kMapping) {
    return codec::InvalidAt(file, paths->at, "gates.paths must be a mapping of patterns to actions",
                            "deploy/: refuse");
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

}  // namespace

Result<Config> ParseConfig(std::string_view text, const std::string& file,
                           const image::TrustFile& read) {
  Config config;
  YamlNode root = TRY(codec::ParseYaml(text, file));
  if (root.kind == YamlKind::kNull) {
    return codec::InvalidAt(file, {1, 1}, "the configuration is empty", "remove the file");
  }
  TRY(CheckKeys(root, file, "the configuration",
                {"limits", "models", "prices", "ecosystems", "images", "gates"}));
  for (const YamlEntry& entry : root.entries) {
    if (entry.key == "limits") TRY(ParseLimits(entry.value, file, &config));
    if (entry.key == "prices") {
      config.prices = TRY(gateway::PriceList::FromYaml(entry.value, file));
    }
    if (entry.key == "models") config.models = TRY(ParseModels(entry.value, file));
    if (entry.key == "ecosystems") {
      config.ecosystems = TRY(ParseTexts(entry.value, file, "ecosystems"));
    }
    if (entry.key == "gates") TRY(ParseGates(entry.value, file, &config));
    if (entry.key == "images") TRY(ParseImages(entry.value, file, read, &config));
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
