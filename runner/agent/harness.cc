// SPDX-License-Identifier: Apache-2.0
#include "agent/harness.h"

#include <algorithm>

#include "base/ascii.h"

namespace agent {
namespace {

constexpr size_t kArgumentBytesMax = 131071;  // Linux's MAX_ARG_STRLEN, without the NUL.

// Tells an agent that is asked to find something where and how to report:
// docs/reference/schemas/findings.schema.json.
constexpr std::string_view kFindingsInstruction =
    "When you are asked to review, or find a problem you do not fix, report it in the file named "
    "by the environment variable AGENTIC_CI_FINDINGS, as JSON: {\"findings\": [{\"path\": "
    "\"src/a.c\", \"line\": 12, \"end_line\": 14, \"severity\": \"error\", \"rule\": "
    "\"short-name\", \"message\": \"what is wrong\", \"suggestion\": \"what these lines should "
    "be replaced by\"}]}. Only message is required; severity is error, warning or note; paths are "
    "relative to the working directory; lines are those of the files before your changes.";

// The value of a variable; empty if it is not there.
std::string ValueOf(const Pairs& environment, const std::string& name) {
  std::string value;
  for (const auto& [known, text] : environment) {
    if (known == name) value = text;
  }
  return value;
}

// Models and addresses stand in arguments, in JSON and in TOML: what would end a text there is
// part of neither.
bool IsPlainWord(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

// A project or a region is part of a host name or of a path.
bool IsPathWord(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return ascii::IsAlpha(c) || ascii::IsDigit(c) || c == '-' || c == '_';
  });
}

bool NamesCodex(std::string_view text) { return text.find("codex") != std::string_view::npos; }

Error NoCredential(const AgentDescription& agent) {
  std::string providers;
  for (const ModelAccess& access : agent.models) {
    providers += (providers.empty() ? "--provider " : " or ") + access.provider;
  }
  return {Code::kSetup, agent.name + " needs a credential for its model", providers};
}

Result<Words> WordsOf(const AgentDescription& agent, const ModelAccess& access,
                      const AgentRequest& request) {
  std::string model = request.model.empty() ? access.model : request.model;
  if (model.empty() && access.model_required) {
    return Error{Code::kUsage, agent.name + " needs a model from " + access.provider,
                 "--model NAME"};
  }
  Words needed;
  for (const std::string& name : access.needs) {
    std::string value = ValueOf(request.environment, name);
    if (value.empty()) {
      return Error{Code::kSetup,
                   agent.name + " needs " + name + " for its model at " + access.provider,
                   "export " + name + "=..."};
    }
    if (!IsPathWord(value)) {
      return Error{Code::kSetup, name + " is not a valid name", "export " + name + "=..."};
    }
    needed.emplace_back(name, std::move(value));
  }
  std::string base_url = ValueOf(request.environment, access.base_url_from);
  if (base_url.empty()) base_url = Expand(access.base_url, needed);
  while (base_url.ends_with('/')) base_url.pop_back();
  if (base_url.empty() && !access.base_url_from.empty()) {
    return Error{
        Code::kSetup,
        agent.name + " needs an address for its model: " + access.base_url_from + " is not set",
        "export " + access.base_url_from + "=https://..."};
  }
  if (!IsPlainWord(model)) {
    return Error{Code::kUsage, "'" + model + "' is not a valid name of a model", "--model NAME"};
  }
  if (!IsPlainWord(base_url)) {
    return Error{Code::kSetup, access.base_url_from + " is not a valid URL",
                 "export " + access.base_url_from + "=https://..."};
  }
  const auto has_value = [&](const std::string& name) {
    return !ValueOf(request.environment, name).empty();
  };
  const auto key = std::find_if(access.keys.begin(), access.keys.end(), has_value);
  const std::string key_name = key != access.keys.end() ? *key : access.keys.front();
  Words words{{"findings", std::string(kFindingsInstruction)},
              {"key", ValueOf(request.environment, key_name)},
              {"key_name", key_name},
              {"base_url", base_url + Expand(access.base_path, needed)},
              {"model", model},
              {"api", access.api}};
  words.insert(words.end(), needed.begin(), needed.end());
  return words;
}

}  // namespace

Result<AgentPlan> PlanAgent(const AgentDescription& agent, const AgentRequest& request) {
  if (request.prompt.empty()) {
    return Error{Code::kUsage, agent.name + " needs a task", "--prompt TEXT or --prompt-file FILE"};
  }
  Words words{{"findings", std::string(kFindingsInstruction)}, {"model", request.model}};
  const ModelAccess* access = ChooseAccess(agent, request.providers, request.environment);
  if (access == nullptr && !agent.models.empty()) return NoCredential(agent);
  if (access != nullptr) words = TRY(WordsOf(agent, *access, request));
  AgentPlan plan;
  plan.stream = agent.stream;
  plan.model = Expand("${model}", words);
  if (access != nullptr) {
    plan.key = Expand("${key}", words);
    plan.key_name = Expand("${key_name}", words);
  }
  plan.argv.push_back(request.executable.empty() ? agent.program : request.executable);
  const std::string program = plan.argv[0];
  plan.may_be_codex = agent.stream == "codex" || NamesCodex(program.substr(program.rfind('/') + 1));
  for (const std::string& text : agent.arguments) plan.argv.push_back(Expand(text, words));
  if (!request.searches) {
    plan.argv.insert(plan.argv.end(), agent.arguments_without_search.begin(),
                     agent.arguments_without_search.end());
  }
  if (!plan.model.empty()) {
    for (const std::string& text : agent.model_arguments) plan.argv.push_back(Expand(text, words));
  }
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
  for (const auto& [name, text] : agent.environment) {
    plan.env.emplace_back(name, Expand(text, words));
  }
  for (const auto& [path, text] : agent.files) {
    plan.home_files.emplace_back(path, Expand(text, words));
  }
  if (access != nullptr) {
    for (const auto& [name, text] : access->environment) {
      plan.env.emplace_back(name, Expand(text, words));
    }
  }
  if (agent.prompt_argument) {
    if (request.prompt.size() > kArgumentBytesMax) {
      return Error{Code::kInvalid,
                   agent.name + " takes the task as an argument, which has at most 128 KiB",
                   "prompt: stdin in the description of the agent"};
    }
    if (request.prompt.find('\0') != std::string::npos) {
      return Error{Code::kInvalid, "the task contains a NUL character"};
    }
    plan.argv.push_back(request.prompt);
  } else {
    plan.stdin_text = request.prompt;
  }
  return plan;
}

Result<AgentPlan> PlanCommand(const AgentRequest& request) {
  if (request.command.empty()) {
    return Error{Code::kUsage, "no agent and no command to run",
                 request.prompt.empty() ? "agentic-ci run -- PROGRAM" : "--agent claude-code"};
  }
  AgentPlan plan;
  plan.argv = request.command;
  plan.may_be_codex = std::any_of(plan.argv.begin(), plan.argv.end(), NamesCodex);
  if (!request.executable.empty()) plan.argv[0] = request.executable;
  plan.stdin_text = request.prompt;
  return plan;
}

const ModelAccess* ChooseAccess(const AgentDescription& agent,
                                const std::vector<std::string>& providers,
                                const Pairs& environment) {
  for (const std::string& provider : providers) {
    for (const ModelAccess& access : agent.models) {
      if (access.provider == provider) return &access;
    }
  }
  for (const ModelAccess& access : agent.models) {
    for (const auto& [name, value] : environment) {
      if (std::find(access.keys.begin(), access.keys.end(), name) != access.keys.end()) {
        return &access;
      }
    }
  }
  return nullptr;
}

bool IsModelAlias(const AgentDescription& agent, std::string_view model) {
  // "opus", "opusplan", "sonnet[1m]": every model of Anthropic's has the number of its version.
  return agent.model_aliases &&
         model.substr(0, model.find('[')).find_first_of("0123456789") == std::string_view::npos;
}

}  // namespace agent
