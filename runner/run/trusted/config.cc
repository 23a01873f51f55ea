// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/config.h"

#include <algorithm>

#include "base/log.h"
#include "codec/data/digest.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "codec/text/quantity.h"
#include "gateway/credential/provider.h"
#include "policy/load/hosted_parse.h"
#include "policy/load/untrusted_parse.h"
#include "run/trusted/actors.h"

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

Status ParseLimits(const YamlNode& node, ConfigReader* reader, Config* config) {
  YamlFields fields = TRY(reader->Open(
      node, "limits", {"max_tokens", "max_cost", "max_requests", "requests_per_minute"}, {}));
  for (const YamlEntry& entry : fields.entries()) {
    if (entry.key == "max_cost") {
      config->max_cost_usd = reader->Keep(ParseCost(fields, entry.key)).value_or(0);
      continue;
    }
    int64_t* limit = entry.key == "max_tokens"            ? &config->max_tokens
                     : entry.key == "max_requests"        ? &config->max_requests
                     : entry.key == "requests_per_minute" ? &config->requests_per_minute
                                                          : nullptr;
    if (limit != nullptr) *limit = reader->Keep(ParseCount(fields, entry.key)).value_or(0);
  }
  return Ok();
}

// `budget`: its amounts are spelled as `max_cost` is.
Status ParseBudget(const YamlNode& node, ConfigReader* reader, Config::Budget* budget) {
  YamlFields fields = TRY(reader->Open(node, "budget", BudgetKeys(), {}));
  for (const BudgetAmount& amount : kBudgetAmounts) {
    if (fields.Find(amount.key) == nullptr) continue;
    budget->limits.*amount.member = reader->Keep(ParseCost(fields, amount.key)).value_or(0);
  }
  if (const YamlNode* unknown = fields.Find("unknown")) {
    budget->warns = unknown->text == kUnknownAnswers[1];
    if (!budget->warns && unknown->text != kUnknownAnswers[0]) {
      reader->Keep(Status(
          fields.Invalid("unknown", "what is done is 'refuse' or 'warn'", "unknown: refuse")));
    }
  }
  if (!budget->limits.any() && reader->errors.empty()) {
    return codec::InvalidAt(reader->file(), node.at, "the budget has no amount",
                            "budget: { per_day: 20 }");
  }
  return Ok();
}

Status ParseImages(const YamlNode& node, ConfigReader* reader, Config* config) {
  YamlFields fields =
      TRY(YamlFields::Open(reader->file(), node, "images", {"trust", "trusted_root", "mirrors"}));
  config->trust = TRY(image::ParseTrust(fields, reader->source.read));
  config->mirrors = TRY(fields.FilledTexts("mirrors"));
  return Ok();
}

// `require`: what a run must have, by the names of run.json's controls.
Result<std::vector<sandbox::ControlName>> ParseRequired(const YamlFields& fields) {
  std::vector<std::string_view> known;
  for (const sandbox::ControlRow& row : sandbox::kControls) {
    if (row.required) known.push_back(row.text);
  }
  std::vector<sandbox::ControlName> required;
  for (const std::string& name : TRY(fields.FilledTexts("require"))) {
    auto row = std::find_if(
        sandbox::kControls.begin(), sandbox::kControls.end(),
        [&](const sandbox::ControlRow& one) { return one.required && one.text == name; });
    if (row == sandbox::kControls.end()) {
      return fields.Invalid("require", "no control is called '" + name + "'",
                            codec::NearestName(name, known));
    }
    required.push_back(row->name);
  }
  return required;
}

void CheckEcosystems(const YamlFields& fields, const std::vector<std::string>& names,
                     ConfigReader* reader) {
  if (names.empty() || !reader->source.checks.ecosystems) return;
  const std::vector<std::string> known = reader->source.checks.ecosystems();
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::find(known.begin(), known.end(), names[i]) != known.end()) continue;
    std::vector<std::string_view> listed(known.begin(), known.end());
    std::string nearest = codec::NearestName(names[i], listed);
    reader->Keep(Status(codec::InvalidAt(reader->file(), fields.Find("ecosystems")->items[i].at,
                                         "no ecosystem is called '" + names[i] + "'",
                                         nearest.empty() ? codec::OneOf(listed) : nearest)));
  }
}

// `bots`: applications by name. A pattern would let in applications that a stranger makes.
Result<std::vector<std::string>> ParseBots(const YamlFields& fields) {
  std::vector<std::string> bots = TRY(fields.FilledTexts("bots"));
  for (const std::string& bot : bots) {
    if (!ValidBot(bot)) {
      return fields.Invalid("bots", "not the name of an application: '" + bot + "'",
                            "bots: [\"dependabot[bot]\"]");
    }
  }
  return bots;
}

// `forks: model`: written out, since it gives strangers' code the use of a credential.
Result<bool> ParseForks(const YamlFields& fields) {
  const YamlNode* forks = fields.Find("forks");
  if (forks == nullptr) return false;
  if (forks->kind == YamlKind::kScalar && forks->text == "model") return true;
  return fields.Invalid("forks", "what pull requests of forks may have is 'model' or nothing",
                        "forks: model");
}

// Reads the lock file of an agent's package.
Status ReadLock(const ConfigReader& reader, agent::Package* package) {
  package->lock = TRY(reader.source.read(package->lockfile));
  return agent::CheckLock(*package).Context(package->lockfile);
}

// Parses agents with their lock files, and models at known providers.
Result<std::vector<agent::AgentDescription>> ParseConfigAgents(const YamlNode& node,
                                                               ConfigReader* reader) {
  std::vector<Error> errors;
  auto agents = TRY(agent::ParseAgents(node, reader->file(), &errors));
  for (Error& error : errors) reader->Keep(Status(std::move(error)));
  for (size_t i = 0; i < agents.size(); ++i) {  // In the order of the entries.
    auto keep = [&](const Status& status) {
      if (status.ok()) return;
      reader->Keep(Status(codec::InvalidAt(reader->file(), node.entries[i].at,
                                           "agent '" + agents[i].name + "': " + status.error().what,
                                           status.error().hint)));
    };
    if (agents[i].package) keep(ReadLock(*reader, &*agents[i].package));
    for (const agent::ModelAccess& access : agents[i].models) {
      if (!reader->source.checks.option) break;
      keep(reader->source.checks.option("provider", access.provider));
    }
  }
  return agents;
}

void CheckTaskAgents(const Config& config, ConfigReader* reader) {
  for (const Task& task : config.tasks) {
    for (const TaskOption& option : task.options) {
      if (option.option != "agent") continue;
      auto known = agent::DescribeAgent(option.text, config.agents);
      if (known.ok()) continue;
      std::string hint = known.error().hint;
      constexpr std::string_view kFlag =
          "--agent ";  // A file has values; only a command line options.
      if (hint.starts_with(kFlag)) hint.erase(0, kFlag.size());
      reader->Keep(Status(codec::InvalidAt(reader->file(), option.at, known.error().what, hint)));
    }
  }
}

// `providers`: {NAME: {identity: {KEY: VALUE}}}.
Status ParseProviders(const YamlNode& node, ConfigReader* reader, Config* config) {
  const std::string& file = reader->file();
  TRY(codec::CheckMapping(file, node, "providers"));
  for (const codec::YamlEntry& entry : node.entries) {
    auto at = [&](const Error& error) {
      return codec::InvalidAt(file, entry.at, error.what, error.hint);
    };
    Result<gateway::Provider> provider = gateway::FindProvider(entry.key);
    if (!provider.ok()) return at(provider.error());
    YamlFields fields =
        TRY(YamlFields::Open(file, entry.value, "an entry of 'providers'", {"identity"}));
    const YamlNode* identity = fields.Find("identity");
    if (identity == nullptr) return fields.Invalid("identity", "'identity' is missing");
    if (!provider.value().identity) {
      return fields.Invalid("identity", entry.key + " takes no identity of a job");
    }
    TRY(codec::CheckMapping(file, *identity, "identity"));
    gateway::IdentityValues values;
    for (const codec::YamlEntry& value : identity->entries) {
      if (value.value.kind != YamlKind::kScalar) {
        return codec::InvalidAt(file, value.at, "'" + value.key + "' must be text");
      }
      values.emplace_back(value.key, value.value.text);
    }
    Status good = gateway::CheckIdentity(entry.key, *provider.value().identity, values);
    if (!good.ok()) return at(good.error());
    config->identities.emplace_back(entry.key, std::move(values));
  }
  return Ok();
}

Status ParseInto(std::string_view text, ConfigReader* reader, Config* config) {
  const std::string& file = reader->file();
  YamlNode root = TRY(codec::ParseYaml(text, file));
  if (root.kind == YamlKind::kNull) {
    return codec::InvalidAt(file, {1, 1}, "the configuration is empty", "remove the file");
  }
  // No model listed would be any model.
  YamlFields fields = TRY(reader->Open(
      root, "the configuration",
      {"limits", "budget", "models", "prices", "ecosystems", "images", "gates", "require", "agents",
       "tasks", "bots", "forks", "hosted_tools", "after_untrusted", "providers"},
      {"limits", "budget", "models", "agents", "tasks"}));
  using Texts = std::vector<std::string>;
  config->models = reader->Keep(fields.FilledTexts("models")).value_or(Texts());
  config->ecosystems = reader->Keep(fields.FilledTexts("ecosystems")).value_or(Texts());
  CheckEcosystems(fields, config->ecosystems, reader);
  config->bots = reader->Keep(ParseBots(fields)).value_or(Texts());
  config->fork_models = reader->Keep(ParseForks(fields)).value_or(false);
  config->require =
      reader->Keep(ParseRequired(fields)).value_or(std::vector<sandbox::ControlName>());
  const YamlNode* limits = fields.Find("limits");
  if (limits != nullptr && !codec::IsEmpty(*limits)) {
    reader->Keep(ParseLimits(*limits, reader, config));
  }
  const YamlNode* budget = fields.Find("budget");
  if (budget != nullptr && !codec::IsEmpty(*budget)) {
    reader->Keep(ParseBudget(*budget, reader, &config->budget));
  }
  if (const YamlNode* prices = fields.Find("prices")) {
    auto list = reader->Keep(gateway::PriceList::FromYaml(*prices, file));
    if (list) config->prices = *std::move(list);
  }
  if (const YamlNode* providers = fields.Find("providers")) {
    reader->Keep(ParseProviders(*providers, reader, config));
  }
  if (const YamlNode* hosted = fields.Find("hosted_tools")) {
    auto list = reader->Keep(policy::ParseHostedTools(file, *hosted));
    if (list) config->hosted_tools = *std::move(list);
  }
  if (const YamlNode* untrusted = fields.Find("after_untrusted")) {
    auto value = reader->Keep(policy::ParseAfterUntrusted(file, *untrusted));
    if (value) config->after_untrusted = *std::move(value);
  }
  if (const YamlNode* gates = fields.Find("gates")) {
    auto parsed = reader->Keep(ParseGates(*gates, reader));
    if (parsed) config->gates = *std::move(parsed);
  }
  if (const YamlNode* images = fields.Find("images")) {
    reader->Keep(ParseImages(*images, reader, config));
  }
  const YamlNode* agents = fields.Find("agents");
  const bool has_agents = agents != nullptr && !codec::IsEmpty(*agents);
  if (has_agents) config->agents = TRY(ParseConfigAgents(*agents, reader));
  const YamlNode* tasks = fields.Find("tasks");
  if (tasks != nullptr && !codec::IsEmpty(*tasks)) {
    auto list = reader->Keep(ParseTasks(*tasks, reader));
    if (list) config->tasks = *std::move(list);
    CheckTaskAgents(*config, reader);
  }
  return Ok();
}

}  // namespace

std::vector<std::string_view> BudgetKeys() {
  std::vector<std::string_view> keys = {"unknown"};
  for (const BudgetAmount& amount : kBudgetAmounts) keys.push_back(amount.key);
  return keys;
}

Result<Config> ParseConfig(std::string_view text, const ConfigSource& source,
                           std::vector<Error>* errors) {
  ConfigReader reader{source};
  Config config;
  reader.Keep(ParseInto(text, &reader, &config));
  if (errors != nullptr) *errors = reader.errors;
  if (!reader.errors.empty()) return std::move(reader.errors.front());
  return config;
}

Result<Config> LoadConfig(const change::Repository* repository, const std::string& checkout,
                          const TrustedRef& ref, const ConfigChecks& checks) {
  TrustedFile file = TRY(ReadTrustedFile(repository, checkout, ref, kConfigPath, kConfigBytesMax));
  if (file.worktree_differs) {
    logging::Warn("worktree configuration ignored: commit it, or use --policy-ref worktree",
                  {{"file", kConfigPath}});
  }
  if (!file.text) {
    TRY(CheckSpelling(repository, checkout, ref, kConfigPath, {"configuration", "settings"}));
    Config none;
    none.absent = true;
    return none;
  }
  // The files that this file names come from the same commit.
  image::TrustFile read = [&](const std::string& path) -> Result<std::string> {
    TrustedFile named = TRY(ReadTrustedFile(repository, checkout, ref, path, kNamedFileBytesMax));
    if (named.text) return *std::move(named.text);
    return Error{Code::kNotFound, "there is no " + path + " at " + ref.ref};
  };
  Config config = TRY(ParseConfig(*file.text, {kConfigPath, read, checks}));
  config.sha256 = codec::Sha256Hex(*file.text);
  return config;
}

}  // namespace run
