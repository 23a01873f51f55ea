// SPDX-License-Identifier: Apache-2.0
#include "run/task_request.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "run/ecosystem/ecosystem.h"
#include "run/shown/left_files.h"

namespace run {
namespace {

constexpr size_t kProposalBytesMax = size_t{256} << 10;  // PromptVariable::bytes_max of `diff`.

bool Gave(const Request& request, std::string_view option) {
  return std::find(request.given.begin(), request.given.end(), option) != request.given.end();
}

std::string Lines(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

// "https://host/owner/name.git", "git@host:owner/name" -> "owner/name".
std::string RepositoryOf(std::string url) {
  if (url.ends_with(".git")) url.resize(url.size() - 4);
  size_t name = url.rfind('/');
  if (name == std::string::npos || name == 0) return {};
  size_t owner = url.find_last_of("/:", name - 1);
  return owner == std::string::npos ? "" : url.substr(owner + 1);
}

// What is committed and what is not, but for files that the agent does not get either.
Result<change::Proposal> ReadLocalProposal(const TaskSources& sources, size_t patch_bytes_max) {
  const change::Repository& repository = *sources.repository;
  std::set<std::string> withheld;
  if (patch_bytes_max > 0) {
    LeftFiles left = TRY(FindLeftFiles(repository.top()));
    withheld = {left.credentials.begin(), left.credentials.end()};
  }
  const std::string& base = sources.local->base;
  return repository.ReadProposal(base.empty() ? "HEAD" : base, patch_bytes_max, &withheld);
}

Result<change::Proposal> ReadProposal(const TaskSources& sources, size_t patch_bytes_max) {
  if (sources.repository != nullptr && sources.local != nullptr) {
    return ReadLocalProposal(sources, patch_bytes_max).Context("reading what the checkout changes");
  }
  if (sources.repository == nullptr || sources.ref.ref == kWorktree) return change::Proposal();
  if (sources.repository->unborn()) return change::Proposal();
  return sources.repository->ReadProposal(sources.ref.ref, patch_bytes_max)
      .Context("reading what the checkout changes");
}

using Values = std::map<std::string, std::string, std::less<>>;

Values ValuesOf(const TaskSources& sources) {
  const forge::Event& event = sources.event;
  const forge::EventText& text = sources.text;
  int64_t number = event.proposal_number != 0 ? event.proposal_number : text.number;
  return {{"number", number == 0 ? "" : std::to_string(number)},
          {"repository", event.repository},
          {"event", event.name},
          {"actor", event.actor},
          {"author", text.author},
          {"base", event.base_ref},
          {"head", event.head_ref},
          {"head_sha", event.head_sha},
          {"title", text.title},
          {"body", text.body},
          {"labels", Lines(text.labels)},
          {"comment", text.comment},
          {"comment_author", text.comment_author}};
}

// The values that a pull request from the checkout's branch would have.
void AddLocal(const TaskSources& sources, Values* values) {
  const change::HeadFacts& local = *sources.local;
  (*values)["repository"] = RepositoryOf(sources.repository->OriginUrl());
  (*values)["base"] = local.base_branch;
  (*values)["head"] = local.branch.empty() ? local.commit : local.branch;
  (*values)["head_sha"] = local.commit;
  (*values)["title"] = local.title;
  (*values)["body"] = local.body;
}

Error NothingToLookAt(const TaskSources& sources) {
  if (sources.local == nullptr) {
    return {Code::kInvalid, "there is no difference to speak of: the checkout is not in git",
            "git init"};
  }
  std::string base = sources.local->base_branch;
  return {Code::kInvalid,
          "the checkout changes nothing" + (base.empty() ? "" : " compared with " + base) +
              "; new files count once they are added",
          "git add FILE, git switch BRANCH, or --policy-ref COMMIT to compare with another"};
}

Result<std::string> RenderPrompt(const PromptTemplate& prompt, const TaskSources& sources,
                                 bool plan_only) {
  Values values = ValuesOf(sources);
  const bool at_terminal =
      sources.event.forge == forge::ForgeKind::kNone && sources.event.unread_ci.empty();
  const bool of_change = prompt.Uses("diff") || prompt.Uses("files");
  const bool local = sources.repository != nullptr && sources.local != nullptr;
  // A prompt that names none of these may be about an issue.
  if (local && (of_change || prompt.Uses("base") || prompt.Uses("head"))) {
    AddLocal(sources, &values);
  }
  bool in_git = sources.repository != nullptr && sources.ref.ref != kWorktree;
  if (prompt.Uses("base_sha") && in_git && !sources.repository->unborn()) {
    values["base_sha"] = TRY(sources.repository->ResolveCommit(sources.ref.ref));
  }
  if (of_change) {
    change::Proposal proposal =
        TRY(ReadProposal(sources, prompt.Uses("diff") ? kProposalBytesMax + 1 : 0));
    const bool empty = prompt.Uses("diff") && proposal.paths.empty();
    if (at_terminal && empty && !plan_only) return NothingToLookAt(sources);
    values["files"] = Lines(proposal.paths);
    values["diff"] = std::move(proposal.patch);
  }
  std::string word = sys::RandomHex();
  return prompt.Render(values, word);
}

Occasion OccasionOf(const TaskSources& sources) {
  Occasion occasion;
  occasion.event = sources.event.name;
  occasion.action = sources.text.action;
  occasion.labels = sources.text.labels;
  occasion.comment = sources.text.comment;
  occasion.paths = [&sources]() -> Result<std::vector<std::string>> {
    change::Proposal proposal = TRY(ReadProposal(sources, 0));
    return std::move(proposal.paths);
  };
  return occasion;
}

// "review (agent claude-code, provider anthropic; posts comment, review)"
std::string Describe(const Task& task) {
  std::string options;
  for (const TaskOption& option : task.options) {
    for (const TaskKey& key : TaskKeys()) {
      if (key.option != option.option) continue;
      options += (options.empty() ? "" : ", ") + std::string(key.key) + " " + option.text;
    }
  }
  for (const std::string& word : task.command) {
    options += (&word != &task.command.front() ? " " : options.empty() ? "command " : ", command ");
    options += word;
  }
  std::string parts;
  for (const std::string& part : task.post) parts += (parts.empty() ? "; posts " : ", ") + part;
  return task.name + " (" + options + parts + ")";
}

// What a configuration that only the pull request has would do: for reading, nothing of it holds.
std::string DescribeUnmerged(const Result<Config>& config, const TaskSources& sources) {
  if (!config.ok()) return "It has an error: " + config.error().what;
  const std::vector<Task>& tasks = config.value().tasks;
  if (tasks.empty()) return "It has no tasks";
  std::string text;
  for (const Task& task : tasks) text += (text.empty() ? "Its tasks: " : ", ") + Describe(task);
  const Result<const Task*> chosen = ChooseTask(tasks, OccasionOf(sources));
  if (chosen.ok()) return text + ". This event would start " + chosen.value()->name;
  return text + ". This event would start none: " + chosen.error().what;
}

// Fails with kNothingToDo if the configuration is still a proposal: the trusted commit has none,
// and the head has.
Status LookForUnmerged(const TaskSources& sources, const OptionRules& rules) {
  const forge::Event& event = sources.event;
  const change::Repository* git = sources.repository;
  if (!sources.config.absent || event.proposal_number == 0 || git == nullptr) return Ok();
  // The checkout of a pull request is the forge's merge, which may be the only commit there.
  for (const std::string& head : {event.head_sha, std::string("HEAD")}) {
    if (head.empty() || sources.ref.ref == kWorktree) continue;
    const Result<Config> config = LoadConfig(git, git->top(), {head}, CheckBy(rules));
    if (config.ok() ? config.value().absent : config.error().code == Code::kNotFound) continue;
    const std::string base = event.base_ref.empty() ? sources.ref.ref : event.base_ref;
    constexpr size_t kBytesMax = 4000;
    return Error{Code::kNothingToDo,
                 codec::NeutralLine("the branch " + base + " has no " + kConfigPath +
                                        " yet; this one holds once it is merged. " +
                                        DescribeUnmerged(config, sources),
                                    kBytesMax)};
  }
  return Ok();
}

}  // namespace

ConfigChecks CheckBy(const OptionRules& rules) {
  ConfigChecks checks;
  checks.option = [&rules](std::string_view option, std::string_view text) {
    Request scratch;
    return rules.set(option, text, &scratch);
  };
  checks.ecosystems = [] {
    std::vector<std::string> names;
    for (const Ecosystem& one : KnownEcosystems()) names.push_back(one.name);
    return names;
  };
  return checks;
}

Result<const Task*> SelectTask(const TaskSources& sources, const OptionRules& rules,
                               const Request& request) {
  const std::vector<Task>& tasks = sources.config.tasks;
  bool asked = Gave(request, "agent") || Gave(request, "image") || !request.command.empty();
  if (!asked) TRY(LookForUnmerged(sources, rules));
  if (!request.task.empty()) return FindTask(tasks, request.task);
  if (tasks.empty() || asked) return static_cast<const Task*>(nullptr);
  const bool prompted = Gave(request, "prompt") || Gave(request, "prompt-file");
  if (prompted && sources.event.name.empty()) {
    return Error{Code::kUsage, "a prompt needs an agent or a task",
                 "--agent claude-code, or --task " + tasks.front().name};
  }
  return ChooseTask(tasks, OccasionOf(sources));
}

Result<const Task*> TakeTask(const TaskSources& sources, const OptionRules& rules,
                             Request* request) {
  const Task* task = TRY(SelectTask(sources, rules, *request));
  if (task == nullptr) return task;
  const std::vector<std::string> typed = request->given;
  for (const TaskOption& option : task->options) {
    if (std::find(typed.begin(), typed.end(), option.option) != typed.end()) continue;
    TRY(rules.set(option.option, option.text, request)
            .Context(codec::Locate(kConfigPath, option.at)));
    // An option that cannot be enforced is refused as if typed.
    request->given.emplace_back(option.option);
  }
  if (request->command.empty()) request->command = task->command;
  request->policy_path = task->policy;
  if (task->prompt && !Gave(*request, "prompt") && !Gave(*request, "prompt-file")) {
    request->prompt = TRY(RenderPrompt(*task->prompt, sources, request->plan_only)
                              .Context("the prompt of the task '" + task->name + "'"));
  }
  request->task = task->name;
  for (const std::string& part : task->post) {
    request->post += (request->post.empty() ? "" : ",") + part;
  }
  TRY(rules.check(*request).Context("the task '" + task->name + "'"));
  return task;
}

Result<std::optional<change::HeadFacts>> DescribeLocal(const forge::Event& event,
                                                       const Request& request,
                                                       const change::Repository* repository) {
  using Facts = std::optional<change::HeadFacts>;
  const bool in_ci = event.forge != forge::ForgeKind::kNone || !event.unread_ci.empty();
  if (in_ci || repository == nullptr) return Facts();
  change::HeadFacts facts =
      TRY(repository->DescribeHead().Context("reading the checkout's branch"));
  const std::string& asked = request.policy_ref;
  if (!asked.empty() && asked != kWorktree && asked != "HEAD") facts.base = asked;
  if (facts.base == asked) facts.base_branch = asked;
  return Facts(std::move(facts));
}

}  // namespace run
