// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <algorithm>
#include <map>

#include "cli/output.h"
#include "codec/text/nearest.h"

namespace cli {
namespace {

// Returns what may follow each beginning of a command line; "" is the beginning of all.
std::map<std::string, std::string, std::greater<>> Continuations(
    const std::vector<Command>& commands) {
  std::map<std::string, std::string, std::greater<>> words;
  auto add = [&](const std::string& behind, std::string_view word) {
    std::string& known = words[behind];
    if ((" " + known + " ").find(" " + std::string(word) + " ") != std::string::npos) return;
    known += (known.empty() ? "" : " ") + std::string(word);
  };
  for (std::string_view word : {"help", "--help", "--version"}) add("", word);
  for (const Command& command : commands) {
    if (command.hidden) continue;
    std::string name(command.name);
    size_t blank = name.find(' ');
    add("", name.substr(0, blank));
    if (blank != std::string::npos) add(name.substr(0, blank), name.substr(blank + 1));
    for (const OptionSpec& option : command.options) add(name, "--" + std::string(option.name));
    add(name, "--help");
  }
  return words;
}

// The longest beginning first: "policy check" before "policy".
std::string RenderBash(const std::vector<Command>& commands) {
  std::string cases;
  for (const auto& [behind, words] : Continuations(commands)) {
    if (behind.empty()) continue;
    cases += "    '" + behind + " '*) words='" + words + "' ;;\n";
  }
  return "# Completes agentic-ci in bash.\n"
         "_agentic_ci() {\n"
         "  local line=\"${COMP_WORDS[*]:1:COMP_CWORD-1} \" words\n"
         "  case $line in\n"
         "    *' -- '*) return ;;\n" +
         cases + "    *) words='" + Continuations(commands)[""] +
         "' ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _agentic_ci agentic-ci\n";
}

std::string RenderFish(const std::vector<Command>& commands) {
  std::string text = "# Completes agentic-ci in fish.\n";
  for (const auto& [behind, words] : Continuations(commands)) {
    std::string line = "agentic-ci" + (behind.empty() ? "" : " " + behind);
    text += "complete -c agentic-ci -n 'string match -qr \"^" + line +
            (behind.empty() ? " [^ ]*$" : " ") + "\" -- (commandline -cp)' -a '" + words + "'\n";
  }
  return text;
}

}  // namespace

Result<std::string> RenderCompletion(const std::vector<Command>& commands, std::string_view shell) {
  if (shell == "bash") return RenderBash(commands);
  if (shell == "zsh") return "autoload -Uz bashcompinit && bashcompinit\n" + RenderBash(commands);
  if (shell == "fish") return RenderFish(commands);
  std::string nearest(codec::NearestName(shell, {"bash", "zsh", "fish"}));
  return Error{Code::kUsage, "no completion script for '" + std::string(shell) + "'",
               "agentic-ci completion " + (nearest.empty() ? "bash" : nearest)};
}

Result<int> CompletionCommand(const Arguments& arguments) {
  std::string shell = arguments.operands.empty() ? "bash" : arguments.operands.front();
  std::string script = TRY(RenderCompletion(Commands(), shell));
  TRY(Print(script));
  return 0;
}

}  // namespace cli
