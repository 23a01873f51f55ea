// SPDX-License-Identifier: Apache-2.0
#include "session/agent_run.h"

#include <unistd.h>

#include <algorithm>

#include "agent/harness.h"
#include "base/ascii.h"
#include "base/log.h"
#include "base/sys.h"
#include "codec/text/shell_word.h"
#include "run/agent_end.h"
#include "run/agent_output.h"
#include "run/model_access.h"
#include "run/outcome.h"
#include "session/client.h"
#include "session/shell.h"

namespace session {
namespace {

constexpr int64_t kThousand = 1000;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

run::EndCause KindOf(const CommandResult& result) {
  if (result.reason == EndReason::kTimeout) return sandbox::LimitName::kTimeout;
  if (result.reason == EndReason::kMemory) return sandbox::LimitName::kMemory;
  if (result.reason == EndReason::kOutput) return sandbox::LimitName::kOutput;
  return run::EndKind::kExited;
}

// A word of the shell's; where it has what was planned for the credential, the sandbox's own.
std::string WordOf(const agent::AgentPlan& plan, std::string_view text) {
  std::string word;
  size_t at = plan.key.empty() ? std::string_view::npos : text.find(plan.key);
  for (; at != std::string_view::npos; at = text.find(plan.key)) {
    const size_t end = at + plan.key.size();
    const bool longer = end < text.size() && (ascii::IsAlphanumeric(text[end]) || text[end] == '_');
    word += codec::ShellWord(text.substr(0, longer ? end : at));
    if (!longer) word += "\"${" + plan.key_name + "}\"";
    text.remove_prefix(end);
  }
  return word + codec::ShellWord(text);
}

}  // namespace

std::string AgentScript(const agent::AgentPlan& plan) {
  std::string script;
  for (const auto& [path, text] : plan.home_files) {
    script += "mkdir -p \"$HOME\"/" + QuoteWords({DirectoryOf(path)}) + " && printf %s " +
              WordOf(plan, text) + " >\"$HOME\"/" + QuoteWords({path}) + "\n";
  }
  if (!plan.env.empty()) script += "env ";
  for (const auto& [name, value] : plan.env) script += WordOf(plan, name + "=" + value) + " ";
  for (size_t i = 0; i < plan.argv.size(); ++i) {
    script += (i == 0 ? "" : " ") + WordOf(plan, plan.argv[i]);
  }
  if (plan.stdin_text.empty()) return script;
  std::string end = sys::RandomHex();
  return script + " <<'" + end + "'\n" + plan.stdin_text + "\n" + end;
}

Result<int> RunAgent(const ScriptRunner& run, const agent::AgentDescription* agent,
                     const run::Request& request, const Facts& facts) {
  agent::AgentRequest wanted;
  wanted.prompt = request.prompt;
  if (wanted.prompt.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, "the prompt contains a NUL character"};
  }
  wanted.model = request.model;
  wanted.command = request.command;
  // The sandbox has its credentials; where there is none, the agent says so.
  wanted.providers = facts.providers;
  wanted.environment = run::AssumedVariables(agent, facts.providers, facts.variables);
  agent::AgentPlan plan =
      TRY(agent != nullptr ? agent::PlanAgent(*agent, wanted) : agent::PlanCommand(wanted));

  run::OutputFiles files;
  files.terminal = STDOUT_FILENO;
  files.shown = run::ShownAt(STDOUT_FILENO);
  codec::SecretMask masked;  // Left empty: the sandbox's supervisor masks.
  files.stream = plan.stream;
  files.may_be_codex = plan.may_be_codex;
  run::AgentOutput output(files, masked);
  auto sink = [&](bool error, std::string_view bytes) {
    output.Take(error ? run::AgentOutput::Pipe::kError : run::AgentOutput::Pipe::kOutput, bytes);
    return Ok();
  };
  ExecRequest exec;
  exec.timeout_ms = request.timeout_s * kThousand;
  exec.stream = plan.stream;
  exec.lists_changes = false;
  CommandResult result = TRY(run(AgentScript(plan), exec, sink));
  run::AgentEnd end;
  end.kind = KindOf(result);
  end.status = result.status;
  end.summary = output.Finish(result.status);
  report::OutcomeRecord outcome = run::DecideOutcome(end, {}, {});
  if (!outcome.reason.empty()) logging::Info("run ended", {{"why", outcome.reason}});
  return outcome.exit_code;
}

}  // namespace session
