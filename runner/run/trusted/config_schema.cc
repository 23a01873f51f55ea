// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/config_schema.h"

#include <span>
#include <vector>

#include "agent/description.h"
#include "agent/dialect.h"
#include "codec/data/json.h"
#include "gateway/credential/provider.h"
#include "policy/model/json_schema.h"
#include "run/trusted/config.h"
#include "run/trusted/task.h"
#include "sandbox/limit/control.h"

namespace run {
namespace {

using codec::Json;

// Plain numbers and booleans are text where text is wanted.
Json TextSchema() {
  Json schema;
  return schema.Set("type", Json::FromStrings({"string", "number", "boolean"}));
}

Json TypeSchema(std::string_view type) {
  Json schema;
  return schema.Set("type", type);
}

// The controls that `require` takes.
Json ControlSchema() {
  Json names = Json::EmptyArray();
  for (const sandbox::ControlRow& row : sandbox::kControls) {
    if (row.required) names.Push(row.text);
  }
  return Json().Set("enum", std::move(names));
}

Json ListSchema(Json items) {
  return TypeSchema("array").Set("items", std::move(items)).Set("minItems", 1);
}

Json ChoiceSchema(std::span<const std::string_view> values) {
  Json schema;
  return schema.Set("enum", Json::FromStrings({values.begin(), values.end()}));
}

Json MapSchema(Json values) {
  return TypeSchema("object").Set("additionalProperties", std::move(values));
}

Json Described(Json schema, std::string_view doc) { return schema.Set("description", doc); }

Json ClosedSchema(Json properties) {
  return TypeSchema("object")
      .Set("additionalProperties", false)
      .Set("properties", std::move(properties))
      .Set("minProperties", 1);
}

Json TextOrListSchema() {
  Json choices;
  choices.Push(TextSchema()).Push(ListSchema(TextSchema()));
  Json schema;
  return schema.Set("anyOf", std::move(choices));
}

Json CountSchema() { return TypeSchema("integer").Set("minimum", 1); }

Json OptionDoc(Json schema, std::string_view option) {
  return Described(std::move(schema), "As --" + std::string(option) + ".");
}

Json GatesSchema() {
  static constexpr std::string_view kActions[] = {"refuse", "warn", "allow"};
  Json properties;
  properties.Set("paths", MapSchema(ChoiceSchema(kActions)))
      .Set("files", Described(CountSchema(), "The most files that a patch may change."))
      .Set("bytes", Described(TextSchema(), "The most bytes that a patch may have: 16MiB."));
  return TypeSchema("object")
      .Set("additionalProperties", false)
      .Set("properties", std::move(properties));
}

Json WhenSchema() {
  Json properties;
  std::string names;
  for (std::string_view event : TaskEvents()) {
    names += (names.empty() ? "" : "|") + std::string(event);
  }
  Json event = TypeSchema("string").Set("pattern", "^(" + names + ")(\\.[a-z_]+)?$");
  properties
      .Set("events", Described(ListSchema(std::move(event)),
                               "Events, as NAME or NAME.ACTIVITY: pull_request.labeled."))
      .Set("labels", Described(ListSchema(TextSchema()), "Labels, one of which must be there."))
      .Set("commands", Described(ListSchema(TypeSchema("string").Set("pattern", "^/.")),
                                 "What the first line of a new comment begins with: /review."))
      .Set("paths", Described(ListSchema(TextSchema()),
                              "Patterns as in .gitignore, one of which a changed file matches."));
  return ClosedSchema(std::move(properties));
}

Json ChecksSchema() {
  Json properties;
  properties
      .Set("run", Described(ListSchema(TextSchema()).Set("maxItems", int64_t{kTaskChecksMax}),
                            "Shell commands that must succeed over the agent's patch."))
      .Set("policy_file", Described(TypeSchema("string"),
                                    "A policy of the same commit that holds for the checks."))
      .Set("timeout", Described(TextSchema(), "The time limit of each command: 10m."));
  return ClosedSchema(std::move(properties)).Set("required", Json::EmptyArray().Push("run"));
}

Json TaskSchema() {
  Json properties;
  for (const TaskKey& key : TaskKeys()) {
    bool list = key.shape == TaskKey::Shape::kTextOrList;
    properties.Set(std::string(key.key),
                   OptionDoc(list ? TextOrListSchema() : TextSchema(), key.option));
  }
  Json limits;
  for (const TaskKey& key : TaskLimits()) {
    limits.Set(std::string(key.key), OptionDoc(TextSchema(), key.option));
  }
  properties.Set("limits", ClosedSchema(std::move(limits)))
      .Set("prompt", Described(TextSchema(), "The prompt, with variables such as {{title}}."))
      .Set("policy",
           Described(TextSchema(), "The task's policy, a file of the same commit in .agentic-ci/."))
      .Set("prompt_file", Described(TypeSchema("string"),
                                    "A file of the same commit that has the prompt, from the "
                                    "repository's root."))
      .Set("command", Described(ListSchema(TextSchema()),
                                "The command of the agent `command`, or further arguments."))
      .Set("env", OptionDoc(MapSchema(TextSchema()).Set("minProperties", 1), "env"))
      .Set("gates", GatesSchema())
      .Set("checks", ChecksSchema())
      .Set("post",
           Described(ListSchema(ChoiceSchema(TaskPosts())), "What of the report is posted."))
      .Set("when", WhenSchema());
  return ClosedSchema(std::move(properties));
}

Json LimitsSchema() {
  Json properties;
  properties.Set("max_tokens", CountSchema())
      .Set("max_cost", TypeSchema("number").Set("exclusiveMinimum", 0))
      .Set("max_requests", CountSchema())
      .Set("requests_per_minute", CountSchema());
  return ClosedSchema(std::move(properties));
}

Json BudgetSchema() {
  Json properties;
  for (const BudgetAmount& amount : kBudgetAmounts) {
    properties.Set(std::string(amount.key),
                   Described(TypeSchema("number").Set("exclusiveMinimum", 0), amount.doc));
  }
  properties.Set("unknown",
                 Described(ChoiceSchema(kUnknownAnswers),
                           "What becomes of a run where it is not known what was spent."));
  return Described(ClosedSchema(std::move(properties)), "What all runs together may spend.");
}

Json ImagesSchema() {
  Json properties;
  properties.Set("trust", TypeSchema("array").Set("items", TypeSchema("object")))
      .Set("trusted_root", TypeSchema("string"))
      .Set("mirrors", TypeSchema("array").Set("items", TypeSchema("string")));
  return TypeSchema("object")
      .Set("additionalProperties", false)
      .Set("properties", std::move(properties));
}

// {NAME: {identity: {KEY: VALUE}}}, with the keys of each provider that takes an identity.
Json ProvidersSchema() {
  Json providers;
  for (const std::string& name : gateway::ProviderNames()) {
    Result<gateway::Provider> provider = gateway::FindProvider(name);
    ENSURE(provider.ok());
    if (!provider.value().identity) continue;
    Json keys;
    std::vector<std::string> required;
    for (const gateway::IdentityKey& key : provider.value().identity->keys) {
      keys.Set(key.name, Described(TypeSchema("string"), key.about));
      if (!key.optional && key.fallback.empty()) required.push_back(key.name);
    }
    keys.Set(std::string(gateway::kIdentityAudience),
             Described(TypeSchema("string"), "The audience of the job's token."))
        .Set(std::string(gateway::kIdentityVariable),
             Described(TypeSchema("string"), "The variable that has the job's token."))
        .Set(
            std::string(gateway::kIdentityFile),
            Described(TypeSchema("string"), "The file that has it, read again when it is needed."));
    Json identity;
    identity.Set("identity",
                 ClosedSchema(std::move(keys)).Set("required", Json::FromStrings(required)));
    providers.Set(name, ClosedSchema(std::move(identity)));
  }
  return Described(ClosedSchema(std::move(providers)),
                   "Services for which the job's identity is exchanged for a credential.");
}

Json VariableMapSchema() {
  return MapSchema(TextSchema())
      .Set("propertyNames", TypeSchema("string").Set("pattern", "^[A-Za-z_][A-Za-z0-9_]*$"));
}

Json ModelSchema() {
  Json variables = ListSchema(TypeSchema("string"));
  Json properties;
  properties.Set("provider", Described(TypeSchema("string"), "As --provider."))
      .Set("keys", Described(std::move(variables),
                             "The variables, any one of which has the credential's placeholder."))
      .Set("base_url", Described(TypeSchema("string"), "Where base_url_from is not set."))
      .Set("base_url_from", Described(TypeSchema("string"), "A variable with the address."))
      .Set("base_path", Described(TypeSchema("string"), "Appended to either."))
      .Set("needs", Described(ListSchema(TypeSchema("string")), "Variables that must be set."))
      .Set("api", Described(TypeSchema("string"), "The value of ${api}."))
      .Set("model",
           Described(TypeSchema("string"), "Without --model; `required`: there must be one."))
      .Set("environment", VariableMapSchema());
  return ClosedSchema(std::move(properties))
      .Set("required", Json::FromStrings({"provider", "keys"}));
}

Json AgentSchema() {
  static constexpr std::string_view kPrompts[] = {"stdin", "argument"};
  const std::vector<std::string> built_in = agent::AgentNames();
  const std::vector<std::string_view> names(built_in.begin(), built_in.end());
  Json properties;
  properties
      .Set("like", Described(ChoiceSchema(names), "A built-in agent, whose keys these replace."))
      .Set("npm", Described(TypeSchema("string"), "The package that has the program: NAME@1.2.3."))
      .Set("lockfile", Described(TypeSchema("string"), "Its package-lock.json."))
      .Set("about", TypeSchema("string"))
      .Set("program", Described(TypeSchema("string"), "A name on the PATH, or an absolute path."))
      .Set("install", Described(TypeSchema("string"), "What to type where it is missing."))
      .Set("tried", Described(TextSchema(), "The version that was tried."))
      .Set("stream", Described(ChoiceSchema(agent::StreamNames()), "How its output is read."))
      .Set("prompt", Described(ChoiceSchema(kPrompts), "How the task goes in."))
      .Set("arguments", TypeSchema("array").Set("items", TextSchema()))
      .Set("model_arguments", TypeSchema("array").Set("items", TextSchema()))
      .Set("arguments_without_search",
           Described(TypeSchema("array").Set("items", TextSchema()),
                     "Further arguments where hosted_tools does not allow web_search."))
      .Set("model_aliases", TypeSchema("boolean"))
      .Set("environment", VariableMapSchema())
      .Set("files", Described(MapSchema(TextSchema()), "Text by path below the home directory."))
      .Set("models", TypeSchema("array").Set("items", ModelSchema()));
  Json program;
  Json like;
  Json choices;
  choices.Push(program.Set("required", Json::FromStrings({"program"})))
      .Push(like.Set("required", Json::FromStrings({"like"})));
  return ClosedSchema(std::move(properties)).Set("anyOf", std::move(choices));
}

}  // namespace

std::string RenderConfigSchema() {
  static constexpr std::string_view kForks[] = {"model"};
  Json properties;
  properties.Set("limits", LimitsSchema())
      .Set("budget", BudgetSchema())
      .Set("models", ListSchema(TextSchema()))
      .Set("prices", TypeSchema("array").Set("items", TypeSchema("object")))
      .Set("ecosystems", TypeSchema("array").Set("items", TypeSchema("string")))
      .Set("hosted_tools",
           Described(policy::HostedToolsSchema(),
                     "The tools of models' providers, for a policy that does not say."))
      .Set("after_untrusted",
           Described(policy::AfterUntrustedSchema(),
                     "What closes once a stranger's text may have reached the model, for a policy "
                     "that does not say."))
      .Set("providers", ProvidersSchema())
      .Set("images", ImagesSchema())
      .Set("gates", GatesSchema())
      .Set("require", TypeSchema("array").Set("items", ControlSchema()))
      .Set("bots",
           TypeSchema("array").Set(
               "items", TypeSchema("string").Set("pattern", "^[A-Za-z0-9-]{1,100}\\[bot\\]$")))
      .Set("forks", Described(ChoiceSchema(kForks),
                              "What pull requests of forks may have, once they are labeled."))
      .Set("agents", MapSchema(AgentSchema())
                         .Set("minProperties", 1)
                         .Set("propertyNames",
                              TypeSchema("string").Set("pattern", "^[a-z0-9][a-z0-9-]{0,63}$")))
      .Set("tasks", MapSchema(TaskSchema())
                        .Set("minProperties", 1)
                        .Set("propertyNames",
                             TypeSchema("string").Set("pattern", "^[a-z0-9_][a-z0-9_-]{0,63}$")));
  Json schema;
  schema.Set("$schema", "https://json-schema.org/draft/2020-12/schema")
      .Set("$id", "config.schema.json")
      .Set("title", "A repository's settings for its runs: .agentic-ci/config.yml")
      .Set("type", "object")
      .Set("additionalProperties", false)
      .Set("properties", std::move(properties));
  return codec::RenderJson(schema);
}

}  // namespace run
