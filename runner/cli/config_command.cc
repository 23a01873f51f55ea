// SPDX-License-Identifier: Apache-2.0
#include "cli/config_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "agent/description.h"
#include "base/exit_code.h"
#include "base/join.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "cli/error_text.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_command.h"
#include "codec/data/json.h"
#include "codec/data/yaml.h"
#include "codec/text/quantity.h"
#include "forge/open/open.h"
#include "gateway/credential/provider.h"
#include "run/prepare.h"
#include "run/registry_sources.h"
#include "run/task_request.h"
#include "run/trusted/config.h"
#include "run/trusted/config_schema.h"
#include "run/trusted/prompt_file.h"
#include "starter/placeholders.h"
#include "starter/starter_files.h"
#include "starter/workflow.h"

namespace cli {
namespace {

constexpr size_t kConfigFileBytesMax = size_t{1} << 20;
constexpr char kReleaseHint[] = "agentic-ci config init --release OWNER/agentic-ci@COMMIT";

// Returns the directory that paths in `file` are relative to: the one that .agentic-ci/ is in, or
// its own.
std::string RootOf(const std::string& file) {
  if (file == run::kConfigPath) return ".";
  std::string suffix = "/" + std::string(run::kConfigPath);
  if (file.ends_with(suffix)) return file.substr(0, file.size() - suffix.size());
  size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, std::max<size_t>(slash, 1));
}

struct CheckedConfig {
  std::string file;
  std::string text;
  std::vector<Error> errors;  // The errors from the file's top; empty if it is valid.
};

CheckedConfig CheckConfig(const std::string& file) {
  Result<std::string> text =
      ReadNamedFile(file, kConfigFileBytesMax).Context("reading the configuration");
  if (!text.ok()) return {file, "", {text.error()}};
  auto read = [&](const std::string& path) -> Result<std::string> {
    Fd root = TRY(sys::Open(RootOf(file), O_RDONLY | O_DIRECTORY));
    Result<Fd> named = sys::OpenBeneath(root.get(), path, O_RDONLY | O_NONBLOCK);
    if (named.ok()) return sys::ReadAll(named.value().get(), kConfigFileBytesMax).Context(path);
    if (named.error().code == Code::kNotFound) {
      return Error{Code::kNotFound, "there is no " + path};
    }
    if (named.error().os_error == EXDEV) {
      return Error{Code::kInvalid, path + " is outside of the repository"};
    }
    return std::move(named).error();
  };
  CheckedConfig checked{file, text.value(), {}};
  // Only the errors matter.
  (void)run::ParseConfig(text.value(), {file, read, run::CheckBy(TaskOptionRules())},
                         &checked.errors);
  std::stable_sort(
      checked.errors.begin(), checked.errors.end(), [](const Error& a, const Error& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
      });
  return checked;
}

// Returns an error for each word in the text of the file `shown` that stands for something.
std::vector<Error> PlaceholderErrors(const std::string& shown, std::string_view text) {
  std::vector<Error> errors;
  for (const starter::Placeholder& one : starter::FindPlaceholders(text)) {
    const bool image = one.word == "IMAGE";
    errors.push_back(codec::InvalidAt(
        shown, {one.line, one.column},
        "'" + one.word + "' is a placeholder for " + (image ? "an image" : "a release"),
        image ? "job-image: HOST/REPOSITORY@sha256:..." : kReleaseHint));
  }
  return errors;
}

// Checks the repository's workflows for words that stand for something and were left as they are.
// Returns those that have one.
std::vector<CheckedConfig> CheckWorkflows(const std::string& top) {
  std::vector<CheckedConfig> found;
  for (const std::string& file : starter::WorkflowFiles(top)) {
    Result<std::string> text = sys::ReadFile(top + "/" + file, kConfigFileBytesMax);
    if (!text.ok()) continue;  // A workflow is the forge's to read.
    const std::string shown = top == "." ? file : top + "/" + file;
    CheckedConfig checked{shown, std::move(text).value(), {}};
    checked.errors = PlaceholderErrors(shown, checked.text);
    if (!checked.errors.empty()) found.push_back(std::move(checked));
  }
  return found;
}

Status PrintCheckedConfig(const CheckedConfig& checked) {
  for (const Error& error : checked.errors) {
    // An error in a prompt file has a line that is not one of this text.
    bool own = error.place.file == codec::Locate(checked.file, {});
    TRY(sys::WriteAll(STDERR_FILENO,
                      own ? RenderErrorIn(error, checked.text) : RenderError(error)));
  }
  if (!checked.errors.empty()) return Ok();
  return PrintLines(codec::Locate(checked.file, {}) + ": ok");
}

codec::Json CheckedConfigAsJson(const CheckedConfig& checked) {
  codec::Json errors = codec::Json::EmptyArray();
  for (const Error& error : checked.errors) {
    codec::Json one;
    errors.Push(one.Set("error", error.what).Set("hint", error.hint));
  }
  codec::Json object;
  return object.Set("file", checked.file)
      .Set("valid", checked.errors.empty())
      .Set("errors", std::move(errors));
}

// One line of `config explain`.
struct Setting {
  std::string name;
  std::string value;
  std::string source;
};

// The values of one option, and where they come from; nullopt if it is not set.
std::optional<Setting> ExplainOption(const RunOption& option, const Arguments& arguments,
                                     const run::Task* task, const std::string& at) {
  std::string name(option.spec.name);
  if (arguments.Has(name)) {
    return Setting{name, Join(arguments.All(name), " "), "command line"};
  }
  std::vector<std::string> texts;
  std::string source;
  for (const run::TaskOption& one :
       task != nullptr ? task->options : std::vector<run::TaskOption>()) {
    if (one.option != name) continue;
    if (texts.empty()) source = codec::Locate(run::kConfigPath, one.at) + at;
    texts.push_back(one.text);
  }
  if (!texts.empty()) return Setting{name, Join(texts, " "), source};
  if (option.spec.fallback.empty()) return std::nullopt;
  return Setting{name, std::string(option.spec.fallback), "default"};
}

void ExplainGates(const run::Gates& gates, const std::string& place,
                  std::vector<Setting>* settings) {
  for (const change::PathRule& rule : gates.paths) {
    settings->push_back({"gates.paths", rule.pattern, place});
  }
  if (gates.files != 0) settings->push_back({"gates.files", std::to_string(gates.files), place});
  if (gates.bytes != 0) settings->push_back({"gates.bytes", codec::RenderSize(gates.bytes), place});
}

// Explains what is not an option: the command, the prompt, gates, what is posted.
void ExplainTask(const run::Task& task, const Arguments& arguments, const std::string& at,
                 std::vector<Setting>* settings) {
  std::string place = codec::Locate(run::kConfigPath, task.at) + at;
  const bool own_command = !task.command.empty() && arguments.command.empty();
  if (own_command) settings->push_back({"command", Join(task.command, " "), place});
  const bool own_policy = !task.policy.empty() && !arguments.Has("policy");
  if (own_policy) settings->push_back({"policy", task.policy, place});
  if (task.prompt && !arguments.Has("prompt") && !arguments.Has("prompt-file")) {
    std::vector<std::string> used;
    for (const run::PromptVariable& variable : run::PromptVariables()) {
      if (task.prompt->Uses(variable.name))
        used.push_back("{{" + std::string(variable.name) + "}}");
    }
    std::string file = task.prompt_file;
    if (file.empty()) file = codec::Locate(run::kConfigPath, task.prompt_at);
    settings->push_back(
        {"prompt", used.empty() ? "without variables" : Join(used, " "), file + at});
  }
  ExplainGates(task.gates, place, settings);
  if (task.checks) {
    for (const std::string& script : task.checks->scripts) {
      settings->push_back({"checks.run", script, place});
    }
    const std::string& file = task.checks->policy_file;
    if (!file.empty()) settings->push_back({"checks.policy_file", file, place});
  }
  if (!task.post.empty()) settings->push_back({"post", Join(task.post, ","), place});
}

// Explains what holds for every task.
void ExplainConfig(const run::Config& config, const std::string& at,
                   std::vector<Setting>* settings) {
  std::string place = run::kConfigPath + at;
  auto add = [&](const char* name, std::string value) {
    if (!value.empty()) settings->push_back({name, std::move(value), place});
  };
  auto limit = [](int64_t value) { return value == 0 ? "" : std::to_string(value); };
  auto cost = [text = std::string(32, ' ')](double usd) mutable {
    return usd > 0 ? text.substr(0, std::snprintf(text.data(), text.size(), "%g", usd)) : "";
  };
  add("limits.max_tokens", limit(config.max_tokens));
  add("limits.max_requests", limit(config.max_requests));
  add("limits.requests_per_minute", limit(config.requests_per_minute));
  add("limits.max_cost", cost(config.max_cost_usd));
  for (const run::BudgetAmount& one : run::kBudgetAmounts)
    add(("budget." + std::string(one.key)).c_str(), cost(config.budget.limits.*one.member));
  add("budget.unknown", config.budget.warns ? "warn" : "");
  add("models", Join(config.models, " "));
  add("ecosystems", Join(config.ecosystems, " "));
  if (!config.hosted_tools.empty()) {
    add("hosted_tools", policy::RenderHostedTools(config.hosted_tools));
  }
  if (config.after_untrusted.used()) {
    add("after_untrusted", policy::RenderAfterUntrusted(config.after_untrusted));
  }
  std::vector<std::string> required, agents;
  for (sandbox::ControlName name : config.require) required.emplace_back(sandbox::TextOf(name));
  add("require", Join(required, ", "));
  for (const agent::AgentDescription& one : config.agents) agents.push_back(one.name);
  add("agents", Join(agents, ", "));
  add("bots", Join(config.bots, ", "));
  ExplainGates(config.gates, place, settings);
}

Status PrintSettings(const std::vector<Setting>& settings, bool json) {
  if (json) {
    codec::Json list = codec::Json::EmptyArray();
    for (const Setting& one : settings) {
      codec::Json object;
      list.Push(object.Set("name", one.name).Set("value", one.value).Set("source", one.source));
    }
    codec::Json object;
    return Print(codec::RenderJson(object.Set("settings", std::move(list))));
  }
  size_t width = 0;
  for (const Setting& one : settings) width = std::max(width, one.name.size());
  std::string text;
  for (const Setting& one : settings) {
    text += one.name + std::string(width - one.name.size(), ' ') + "  " + one.value + "  (" +
            one.source + ")\n";
  }
  return PrintLines(text);
}

// Returns the prompt as the agent would get it, with each text of a stranger in its block.
Result<std::string> PromptOf(const run::OpenedConfig& opened, const forge::Event& event,
                             run::Request request) {
  request.plan_only = true;
  TRY(run::TakeTask(opened.sources(event), TaskOptionRules(), &request));
  if (request.prompt_file.empty()) return request.prompt;
  return run::ReadPromptFile(request.prompt_file, opened.checkout.git(), opened.ref)
      .Context("reading the prompt");
}

Result<starter::StarterRequest> PlanStart(const Arguments& arguments,
                                          const change::Repository& repository,
                                          const std::string& directory) {
  starter::StarterRequest request;
  request.agent = arguments.Get("agent", "claude-code");
  run::Request scratch;
  TRY(TaskOptionRules().set("agent", request.agent, &scratch));
  request.facts = starter::LookAt(repository.top(), repository.OriginUrl());
  if (arguments.Has("forge")) {
    request.facts.forge = TRY(starter::ParseForge(arguments.Get("forge")));
    request.facts.forge_reason = "--forge";
  }
  const starter::Forge& forge = *request.facts.forge;
  request.has_pipeline = starter::HasPipeline(repository.top(), forge);
  const bool by_label = starter::HasModel(request) && forge.push_only_reason.empty();
  const std::string usual = by_label ? "label" : "push";
  request.on = TRY(starter::ParseStartOn(arguments.Get("on", usual), forge));
  TRY(starter::TakeRelease(arguments.Get("release"), &request));
  if (starter::HasModel(request)) {
    agent::AgentDescription description = TRY(agent::FindAgentDescription(request.agent));
    request.provider = description.models.front().provider;
    request.install = description.install;
    gateway::Provider provider = TRY(gateway::FindProvider(request.provider));
    request.key_variable = provider.credentials.front().from.front();
    if (provider.identity) request.identity = gateway::IdentityForm(*provider.identity);
  }
  for (const std::string& name : request.facts.ecosystems) {
    run::EcosystemRequest wanted;
    wanted.names = {name};
    wanted.checkout = directory;
    wanted.repository = &repository;
    wanted.ref = {run::kWorktree};
    policy::Policy opened;
    // Asked as a run will ask.
    if (!run::AddEcosystems(wanted, &opened).ok()) request.unknown_here.push_back(name);
  }
  return request;
}

// Returns false if it is there already; it is left alone.
Result<bool> WriteStarter(int top, const starter::StarterFile& file, bool force) {
  for (size_t slash = file.path.find('/'); slash != std::string::npos;
       slash = file.path.find('/', slash + 1)) {
    std::string directory = file.path.substr(0, slash);
    if (sys::OpenBeneath(top, directory, O_RDONLY | O_DIRECTORY).ok()) continue;
    size_t above = directory.rfind('/');
    Fd parent =
        TRY(sys::OpenBeneath(top, above == std::string::npos ? "." : directory.substr(0, above),
                             O_RDONLY | O_DIRECTORY));
    std::string name = directory.substr(above == std::string::npos ? 0 : above + 1);
    if (::mkdirat(parent.get(), name.c_str(), 0755) != 0) return Errno("mkdir " + directory);
  }
  int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL);
  Result<Fd> made = sys::OpenBeneath(top, file.path, flags, 0644);
  if (!made.ok() && made.error().os_error == EEXIST) return false;
  if (!made.ok()) return std::move(made).error();
  TRY(sys::WriteAll(made.value().get(), file.content).Context("writing " + file.path));
  return true;
}

// Puts the release into the workflows of the repository at `path`, opened as `top`, that have words
// in its place. Returns a line for each.
Result<std::string> FillWorkflows(const std::string& path, int top,
                                  const starter::StarterRequest& request) {
  std::string lines;
  if (request.release_path.empty()) return lines;
  for (const std::string& file : starter::WorkflowFiles(path)) {
    Result<Fd> open = sys::OpenBeneath(top, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!open.ok()) continue;
    std::string text = TRY(sys::ReadAll(open.value().get(), kConfigFileBytesMax).Context(file));
    std::string filled = starter::FillRelease(text, request.release_path, request.release_commit);
    if (filled == text) continue;
    TRY(WriteStarter(top, {file, std::move(filled)}, true));
    lines += "filled in " + file + "\n";
  }
  return lines;
}

}  // namespace

std::vector<OptionSpec> ConfigInitOptions() {
  static const std::string forge_doc =
      "One of " + starter::ForgeNames() +
      ". If not given, found by the repository's CI files and its remote.";
  return {{"agent", "NAME", "claude-code",
           "The agent of the first task. With `command`, the task runs the repository's tests."},
          {"forge", "NAME", "", forge_doc},
          {"on", "WHAT", "",
           "What starts the task: `label` (the label `agent` of a pull request, and each push "
           "while it has it; the default of an agent with a model), `push` (each push to a pull "
           "request; where neither labels nor comments start pipelines, as on GitLab, the only "
           "one) or `command` (a comment such as `/review`)."},
          {"release", "PROJECT@COMMIT", "",
           "The release of agentic-ci that the workflow uses, such as `acme/agentic-ci@` and the "
           "40 digits of its commit; also filled into workflows that are there. If not given, "
           "words are left in its place."},
          {"force", "", "", "Replace files that exist."},
          {"workdir", "DIR", ".", "The checkout, or a directory in it."}};
}

Status CheckOwnWorkflow() {
  const auto variable = [](const char* name) { return sys::Environment(name).value_or(""); };
  std::string top = variable("GITHUB_WORKSPACE");
  const std::string ref = variable("GITHUB_WORKFLOW_REF");  // "owner/name/PATH@REF".
  std::string_view path = std::string_view(ref).substr(0, ref.find('@'));
  for (int part = 0; part < 2; ++part) {
    path.remove_prefix(std::min(path.find('/'), path.size()));
    path.remove_prefix(path.empty() ? 0 : 1);
  }
  std::string file(path);
  for (const starter::Forge& forge : starter::Forges()) {
    if (variable(forge.flag) != "true") continue;
    top = variable(forge.checkout);
    file = forge.file;
  }
  Result<Fd> root = sys::Open(top, O_RDONLY | O_DIRECTORY);
  if (top.empty() || file.empty() || !root.ok()) return Ok();
  Result<Fd> opened = sys::OpenBeneath(root.value().get(), file, O_RDONLY | O_NONBLOCK);
  if (!opened.ok()) return Ok();  // Checked out elsewhere, or not at all.
  Result<std::string> text = sys::ReadAll(opened.value().get(), kConfigFileBytesMax);
  if (!text.ok()) return Ok();
  std::vector<Error> errors = PlaceholderErrors(file, text.value());
  if (errors.empty()) return Ok();
  return std::move(errors.front());
}

Result<int> ConfigCheckCommand(const Arguments& arguments) {
  std::vector<std::string> paths = arguments.operands;
  if (paths.empty()) paths = {FindRepositoryFile(run::kConfigPath)};
  if (paths.front().empty()) {
    return Error{Code::kUsage,
                 std::string("no ") + run::kConfigPath + " in this directory or above",
                 "agentic-ci config init"};
  }
  std::vector<CheckedConfig> all;
  for (const std::string& path : paths) all.push_back(CheckConfig(path));
  if (arguments.operands.empty()) {
    std::vector<CheckedConfig> workflows = CheckWorkflows(RootOf(paths.front()));
    std::move(workflows.begin(), workflows.end(), std::back_inserter(all));
  }
  int status = 0;
  codec::Json files = codec::Json::EmptyArray();
  for (const CheckedConfig& checked : all) {
    if (!checked.errors.empty() && status == 0) {
      status = static_cast<int>(ExitCodeOf(checked.errors.front().code));
    }
    if (arguments.Has("json")) {
      files.Push(CheckedConfigAsJson(checked));
    } else {
      TRY(PrintCheckedConfig(checked));
    }
  }
  codec::Json object;
  if (arguments.Has("json")) TRY(Print(codec::RenderJson(object.Set("files", std::move(files)))));
  return status;
}

Result<int> ConfigExplainCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Usage("unexpected '" + arguments.operands.front() + "'",
                 "agentic-ci config explain --task " + arguments.operands.front());
  }
  run::Request request = TRY(ReadRequest(arguments));
  forge::Event event = TRY(forge::ReadEvent(sys::Environment).Context("reading the event"));
  run::OpenedConfig opened = TRY(run::OpenConfig(event, TaskOptionRules(), request));
  const run::Task* task = TRY(run::SelectTask(opened.sources(event), TaskOptionRules(), request));
  std::string at = " at " + opened.ref.ref;
  std::vector<Setting> settings;
  if (task != nullptr) {
    settings.push_back({"task", task->name, codec::Locate(run::kConfigPath, task->at) + at});
  }
  for (const RunOption& option : kRunOptions) {
    bool shown = option.spec.name == "task" || option.spec.name == "json";
    std::optional<Setting> setting = ExplainOption(option, arguments, task, at);
    if (!shown && setting) settings.push_back(*std::move(setting));
  }
  if (!arguments.command.empty()) {
    settings.push_back({"command", Join(arguments.command, " "), "command line"});
  }
  if (task != nullptr) ExplainTask(*task, arguments, at, &settings);
  ExplainConfig(opened.config, at, &settings);
  std::string prompt;
  if (arguments.Has("show-prompt")) prompt = TRY(PromptOf(opened, event, request));
  if (request.json && !prompt.empty()) settings.push_back({"prompt.text", prompt, "rendered"});
  TRY(PrintSettings(settings, request.json));
  if (!request.json && !prompt.empty()) TRY(PrintLines("\n" + prompt));
  return 0;
}

Result<int> ConfigInitCommand(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    return Usage("unexpected '" + arguments.operands.front() + "'", "agentic-ci config init");
  }
  std::string directory = TRY(sys::RealPath(arguments.Get("workdir", ".")));
  Result<change::Repository> repository = change::Repository::Open(directory);
  if (!repository.ok()) {
    Error error = std::move(repository).error();
    if (error.code == Code::kNotFound) error.hint = "git init";
    return error;
  }
  const std::string& top = repository.value().top();
  starter::StarterRequest request = TRY(PlanStart(arguments, repository.value(), directory));
  Fd root = TRY(sys::Open(top, O_RDONLY | O_DIRECTORY));
  std::string text = "forge: " + std::string(request.facts.forge->name) + " (" +
                     request.facts.forge_reason + ")\n";
  text += "starts: " + starter::DescribeStart(request) + "\n";
  std::string left;
  std::string added;
  for (const starter::StarterFile& file : starter::PlanFiles(request)) {
    const std::string place = " " + file.path.substr(0, file.path.find('/'));
    if (!added.ends_with(place)) added += place;
    bool written = TRY(WriteStarter(root.get(), file, arguments.Has("force")));
    if (written && !starter::FindPlaceholders(file.content).empty()) left = file.path;
    text += written ? "wrote " + file.path + "\n"
                    : "kept " + file.path + ", which is there (--force replaces it)\n";
  }
  text += TRY(FillWorkflows(top, root.get(), request));
  if (!left.empty()) {
    text +=
        "to fill in: the words in capitals in " + left + " (agentic-ci config check lists them)\n";
  }
  text += "also: agentic-ci eval redteam shows what this host stops, and what the policy gives\n";
  // Added, they are a change that there is something to say about.
  text += "next: git add" + added + " && agentic-ci run --policy-ref worktree --task " +
          starter::TaskOf(request) + "\n";
  TRY(PrintLines(text));
  return 0;
}

Result<int> ConfigSchemaCommand(const Arguments&) {
  TRY(Print(run::RenderConfigSchema()));
  return 0;
}

}  // namespace cli
