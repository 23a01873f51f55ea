// SPDX-License-Identifier: Apache-2.0
#include "run/task_request.h"

#include <algorithm>
#include <map>

#include "forge/actions.h"
#include "run/ecosystem/ecosystem.h"

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

Result<change::Proposal> ReadProposal(const TaskSources& sources, size_t patch_bytes_max) {
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

Result<std::string> RenderPrompt(const PromptTemplate& prompt, const TaskSources& sources) {
  Values values = ValuesOf(sources);
  bool in_git = sources.repository != nullptr && sources.ref.ref != kWorktree;
  if (prompt.Uses("base_sha") && in_git && !sources.repository->unborn()) {
    values["base_sha"] = TRY(sources.repository->ResolveCommit(sources.ref.ref));
  }
  if (prompt.Uses("diff") || prompt.Uses("files")) {
    change::Proposal proposal =
        TRY(ReadProposal(sources, prompt.Uses("diff") ? kProposalBytesMax + 1 : 0));
    values["files"] = Lines(proposal.paths);
    values["diff"] = std::move(proposal.patch);
  }
  std::string word = TRY(forge::RandomWord());
  return prompt.Render(values, word);
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

Result<const Task*> SelectTask(const TaskSources& sources, const Request& request) {
  const std::vector<Task>& tasks = sources.config.tasks;
  if (!request.task.empty()) return FindTask(tasks, request.task);
  bool asked = Gave(request, "agent") || Gave(request, "image") || !request.command.empty();
  if (tasks.empty() || asked) return static_cast<const Task*>(nullptr);
  Occasion occasion;
  occasion.event = sources.event.name;
  occasion.action = sources.text.action;
  occasion.labels = sources.text.labels;
  occasion.comment = sources.text.comment;
  occasion.paths = [&]() -> Result<std::vector<std::string>> {
    change::Proposal proposal = TRY(ReadProposal(sources, 0));
    return std::move(proposal.paths);
  };
  return ChooseTask(tasks, occasion);
}

Result<const Task*> TakeTask(const TaskSources& sources, const OptionRules& rules,
                             Request* request) {
  const Task* task = TRY(SelectTask(sources, *request));
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
  if (task->prompt && !Gave(*request, "prompt") && !Gave(*request, "prompt-file")) {
    request->prompt = TRY(RenderPrompt(*task->prompt, sources)
                              .Context("the prompt of the task '" + task->name + "'"));
  }
  request->task = task->name;
  for (const std::string& part : task->post) {
    request->post += (request->post.empty() ? "" : ",") + part;
  }
  TRY(rules.check(*request).Context("the task '" + task->name + "'"));
  return task;
}

}  // namespace run
