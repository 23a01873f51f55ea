// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <array>
#include <span>

namespace cli {
namespace {

constexpr size_t kColumns = 80;

constexpr auto kCommonCommands = std::to_array<std::string_view>(
    {"config init", "run", "report", "post", "policy suggest", "exec", "doctor"});

// The commands by what they are for, each by its first word.
struct CommandGroup {
  std::string_view title;
  std::string_view words;
};
constexpr auto kGroups = std::to_array<CommandGroup>({
    {"Runs and reports", "run, config, watch, report, post, stats"},
    {"Lasting sandboxes", "setup, exec, stop, sandbox, serve, mcp"},
    {"Policies", "policy"},
    {"Signatures", "image, verify-bundle, verify-run"},
    {"Evaluation", "eval"},
    {"Host and shell", "doctor, completion"},
});

// The options of `run` that most people use, in short.
struct CommonOption {
  std::string_view name;
  std::string_view doc;
};
constexpr auto kAgentOptions = std::to_array<CommonOption>({
    {"task", "a named task from .agentic-ci/config.yml"},
    {"agent", "claude-code, codex, copilot, gemini and others"},
    {"prompt", "what the agent is to do"},
    {"model", "the model to use"},
});
constexpr auto kPolicyOptions = std::to_array<CommonOption>({
    {"policy", "the policy [.agentic-ci/openshell-policy.yml]"},
    {"secret", "a credential, added only to requests to HOST"},
    {"provider", "a credential of a service such as `anthropic`"},
    {"image", "a signed image to run the agent in"},
    {"isolation", "`landlock` if namespaces are unavailable"},
});
constexpr auto kLimitOptions = std::to_array<CommonOption>({
    {"timeout", "how long the run may take"},
    {"memory", "how much memory the sandbox may use"},
    {"max-cost", "how much the models may cost"},
});
constexpr auto kResultOptions = std::to_array<CommonOption>({
    {"report-dir", "where the report is written"},
    {"apply", "apply the patch to the checkout if gates pass"},
    {"fail-on", "fail on findings this severe or worse"},
    {"plan-only", "show what would be done, and run nothing"},
});
struct OptionGroup {
  std::string_view title;
  std::span<const CommonOption> options;
};
constexpr auto kOptionGroups = std::to_array<OptionGroup>({{"Agent", kAgentOptions},
                                                           {"Policy", kPolicyOptions},
                                                           {"Limits", kLimitOptions},
                                                           {"Results", kResultOptions}});
// A command with more options than this shows those of the groups, and its own.
constexpr size_t kOptionsShownMax = 20;

// `text` in lines of at most 80 columns, each behind `indent` blanks.
std::string Wrap(std::string_view text, size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  while (!text.empty()) {
    size_t blank = text.find(' ');
    std::string_view word = text.substr(0, blank);
    if (line.size() > indent && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return out + line + "\n";
}

std::string RenderOption(const OptionSpec& option) {
  std::string text = "  --" + std::string(option.name);
  if (!option.value.empty()) text += " " + std::string(option.value);
  text += "\n";
  std::string doc(option.doc);
  if (option.repeatable) doc += " May be given several times.";
  if (!option.fallback.empty()) doc += " [" + std::string(option.fallback) + "]";
  return text + Wrap(doc, 6);
}

// A line of a list: the name, and in a column of its own what it is.
std::string RenderRow(std::string_view name, std::string_view doc, size_t column) {
  std::string line = "  " + std::string(name);
  line.resize(std::max(line.size() + 2, column), ' ');
  return line + std::string(doc) + "\n";
}

const Command* Find(const std::vector<Command>& commands, std::string_view name) {
  auto found = std::ranges::find(commands, name, &Command::name);
  return found == commands.end() ? nullptr : &*found;
}

std::string RenderCommonHelp(const std::vector<Command>& commands) {
  constexpr size_t kColumn = 23;
  std::string text =
      "agentic-ci runs an AI coding agent on a pull request, inside a sandbox. It\n"
      "refuses hosts that the base branch's policy does not list, keeps credentials\n"
      "outside, and leaves the checkout unchanged: changes come out as a patch.\n\n"
      "Usage: agentic-ci COMMAND [options]\n\nCommon commands:\n";
  for (std::string_view name : kCommonCommands) {
    const Command* command = Find(commands, name);
    if (command != nullptr) text += RenderRow(name, FirstSentence(command->doc), kColumn);
  }
  text += "\nAll commands:\n";
  for (const CommandGroup& group : kGroups) text += RenderRow(group.title, group.words, kColumn);
  return text + "\nMore: `agentic-ci help COMMAND`, `help --all`, `--version`.\n";
}

std::string RenderEveryCommand(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    text += "  " + std::string(command.name);
    if (!command.operands.empty()) text += " " + std::string(command.operands);
    text += "\n" + Wrap(command.doc, 6);
  }
  return text;
}

std::string RenderGroup(const std::vector<Command>& group) {
  const std::string word(group.front().name.substr(0, group.front().name.find(' ')));
  std::string text = "Usage: agentic-ci " + word + " COMMAND [options]\n\nCommands:\n";
  for (const Command& command : group) {
    if (!command.hidden) text += RenderRow(command.name, FirstSentence(command.doc), 21);
  }
  return text + "\n`agentic-ci help " + word + " COMMAND` describes one of them.\n";
}

const OptionSpec* FindOption(const Command& command, std::string_view name) {
  auto found = std::ranges::find(command.options, name, &OptionSpec::name);
  return found == command.options.end() ? nullptr : &*found;
}

bool IsOfRun(std::string_view name) {
  static const Command run = SelectCommand(Commands(), {"run"}).value();
  return FindOption(run, name) != nullptr;
}

std::string RenderCommonOptions(const Command& command) {
  std::string text;
  for (const OptionGroup& group : kOptionGroups) {
    std::string rows;
    for (const CommonOption& option : group.options) {
      const OptionSpec* spec = FindOption(command, option.name);
      if (spec == nullptr) continue;
      std::string name = "--" + std::string(option.name);
      if (!spec->value.empty()) name += " " + std::string(spec->value);
      std::string row = RenderRow(name, option.doc, 33);
      const std::string fallback = " [" + std::string(spec->fallback) + "]\n";
      if (!spec->fallback.empty() && row.size() + fallback.size() <= kColumns + 2) {
        row.replace(row.size() - 1, 1, fallback);
      }
      rows += row;
    }
    if (!rows.empty()) text += "\n" + std::string(group.title) + ":\n" + rows;
  }
  std::string own;
  for (const OptionSpec& option : command.options) {
    if (!IsOfRun(option.name)) own += RenderOption(option);
  }
  if (!own.empty()) text += "\nOptions of `" + std::string(command.name) + "`:\n" + own;
  return text + "\n" +
         Wrap("`agentic-ci " + std::string(command.name) + " --help --all` shows all " +
                  std::to_string(command.options.size()) +
                  " options and the environment variables.",
              0);
}

}  // namespace

std::string_view FirstSentence(std::string_view doc) {
  const size_t end = doc.find(". ");
  return end != std::string_view::npos ? doc.substr(0, end) : doc.substr(0, doc.size() - 1);
}

std::string RenderHelp(const std::vector<Command>& commands, HelpDetail detail) {
  return detail == HelpDetail::kCommon ? RenderCommonHelp(commands) : RenderEveryCommand(commands);
}

std::string RenderHelp(const Command& command, HelpDetail detail) {
  std::string text = "Usage: agentic-ci " + std::string(command.name);
  if (!command.options.empty()) text += " [options]";
  if (!command.operands.empty()) text += " " + std::string(command.operands);
  text += "\n\n" + Wrap(command.doc, 0);
  std::string example;
  if (!command.example.empty()) {
    const bool several = std::ranges::count(command.example, '\n') > 1;
    example = (several ? "\nExamples:\n" : "\nExample:\n") + std::string(command.example);
  }
  if (detail == HelpDetail::kCommon && command.options.size() > kOptionsShownMax) {
    return text + RenderCommonOptions(command) + example;
  }
  if (!command.options.empty()) text += "\nOptions (with their defaults in brackets):\n";
  for (const OptionSpec& option : command.options) text += RenderOption(option);
  if (!command.variables.empty()) text += "\nEnvironment:\n";
  for (const VariableSpec& variable : command.variables) {
    text += "  " + std::string(variable.name) + "\n" + Wrap(variable.doc, 6);
  }
  return text + example;
}

Result<std::string> HelpFor(const std::vector<Command>& commands,
                            const std::vector<std::string>& words, HelpDetail detail) {
  if (words.empty()) return RenderHelp(commands, detail);
  std::vector<Command> group;
  for (const Command& command : commands) {
    if (command.name.starts_with(words[0] + " ")) group.push_back(command);
  }
  const bool grouped = words.size() == 1 && !group.empty() && Find(commands, words[0]) == nullptr;
  if (grouped) return detail == HelpDetail::kAll ? RenderEveryCommand(group) : RenderGroup(group);
  Command command = TRY(SelectCommand(commands, words));
  return RenderHelp(command, detail);
}

std::string WithBoldHeadings(std::string_view help) {
  std::string out;
  while (!help.empty()) {
    const size_t end = std::min(help.find('\n'), help.size() - 1);
    const std::string_view line = help.substr(0, end);
    const bool heading = line.starts_with("Usage:") || (line.ends_with(':') && line[0] != ' ');
    out += heading ? "\x1b[1m" + std::string(line) + "\x1b[0m" : std::string(line);
    out += '\n';
    help.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace cli
