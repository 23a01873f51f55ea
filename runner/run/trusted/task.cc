// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/task.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/fold.h"
#include "codec/text/nearest.h"
#include "codec/text/neutral.h"
#include "forge/open/open.h"
#include "forge/posted_part.h"
#include "policy/load/parse.h"
#include "sandbox/limit/limit.h"

namespace run {
namespace {

using codec::YamlEntry;
using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kTaskNameBytesMax = 64;

constexpr auto kTaskKeys = std::to_array<TaskKey>({
    {"agent", "agent"},
    {"model", "model"},
    {"provider", "provider", TaskKey::Shape::kTextOrList},
    {"secret", "secret", TaskKey::Shape::kTextOrList},
    {"image", "image"},
    {"isolation", "isolation"},
    {"fail_on", "fail-on"},
});

std::vector<std::string_view> Listed(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

bool ValidTaskName(std::string_view name) {
  auto fits = [](char c) { return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= kTaskNameBytesMax && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

// The entries of a list, each with its place.
Result<std::vector<std::pair<std::string, codec::Position>>> Entries(const YamlFields& fields,
                                                                     std::string_view key) {
  std::vector<std::pair<std::string, codec::Position>> entries;
  std::vector<std::string> texts = TRY(fields.FilledTexts(key));
  for (size_t i = 0; i < texts.size(); ++i) {
    entries.emplace_back(std::move(texts[i]), fields.Find(key)->items[i].at);
  }
  return entries;
}

// `others`: the parts of the same list before it.
Result<std::string> ParsePost(const ConfigReader& reader, const std::string& part, bool alone,
                              const std::vector<std::string>& others, codec::Position at) {
  std::vector<std::string_view> known = TaskPosts();
  if (std::find(known.begin(), known.end(), part) == known.end()) {
    return codec::InvalidAt(reader.file(), at, "'" + part + "' cannot be posted",
                            codec::OneOf(known));
  }
  if (part == "none" && !alone) {
    return codec::InvalidAt(reader.file(), at, "'none' excludes the others", "post: [none]");
  }
  if (forge::DeliversChanges(part) &&
      std::any_of(others.begin(), others.end(), forge::DeliversChanges)) {
    return codec::InvalidAt(reader.file(), at,
                            "the changes go to one place: commits, branch or pull-request",
                            "post: [comment, pull-request]");
  }
  return part;
}

Result<TaskEvent> ParseTaskEvent(const ConfigReader& reader, const std::string& text,
                                 codec::Position at) {
  size_t dot = text.find('.');
  TaskEvent event{text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)};
  const std::span<const std::string_view> known = TaskEvents();
  if (std::find(known.begin(), known.end(), event.name) == known.end()) {
    return codec::InvalidAt(reader.file(), at, "no event is called '" + event.name + "'",
                            codec::NearestName(event.name, Listed(known)));
  }
  auto fits = [](char c) { return ascii::IsLower(c) || c == '_'; };
  bool valid = std::all_of(event.action.begin(), event.action.end(), fits);
  if (dot != std::string::npos && (event.action.empty() || !valid)) {
    return codec::InvalidAt(reader.file(), at, "an event is given as NAME or NAME.ACTIVITY",
                            "pull_request.labeled");
  }
  return event;
}

Result<std::string> ParseSlashCommand(const ConfigReader& reader, const std::string& text,
                                      codec::Position at) {
  if (text.starts_with('/') && text.size() > 1) return text;
  return codec::InvalidAt(reader.file(), at, "a command must begin with '/'", "/" + text);
}

constexpr char kRulesDirectory[] = ".agentic-ci/";

// One task, key by key.
class TaskParser {
 public:
  explicit TaskParser(ConfigReader* reader) : reader_(*reader) {}

  Result<Task> Parse(const YamlEntry& entry) {
    task_ = {};
    task_.name = entry.key;
    task_.at = entry.at;
    if (!ValidTaskName(entry.key)) {
      return codec::InvalidAt(reader_.file(), entry.at,
                              "a task's name must consist of a-z, 0-9, '-' and '_'", "review");
    }
    std::vector<std::string_view> keys = KeysOf(kTaskKeys);
    for (std::string_view key : {"policy", "prompt", "prompt_file", "command", "env", "limits",
                                 "gates", "checks", "post", "when"}) {
      keys.push_back(key);
    }
    YamlFields fields = TRY(reader_.Open(entry.value, "the task '" + entry.key + "'", keys, keys));
    for (const TaskKey& key : kTaskKeys) reader_.Keep(Take(fields, key));
    if (const YamlNode* limits = fields.Find("limits")) reader_.Keep(TakeLimits(*limits));
    if (const YamlNode* variables = fields.Find("env")) reader_.Keep(TakeVariables(*variables));
    reader_.Keep(TakePolicy(fields));
    reader_.Keep(TakePrompt(fields));
    task_.command = reader_.Keep(fields.Texts("command")).value_or(std::vector<std::string>());
    const YamlNode* gates = fields.Find("gates");
    if (gates != nullptr && !codec::IsEmpty(*gates)) {
      auto parsed = reader_.Keep(ParseGates(*gates, &reader_));
      if (parsed) task_.gates = *std::move(parsed);
    }
    if (const YamlNode* checks = fields.Find("checks")) reader_.Keep(TakeChecks(*checks));
    reader_.Keep(TakePost(fields));
    if (const YamlNode* when = fields.Find("when")) reader_.Keep(TakeWhen(*when));
    return std::move(task_);
  }

 private:
  static std::vector<std::string_view> KeysOf(std::span<const TaskKey> specs) {
    std::vector<std::string_view> keys;
    for (const TaskKey& spec : specs) keys.push_back(spec.key);
    return keys;
  }

  // One option, with what `run` itself has to say about its text.
  Status Add(std::string_view option, std::string text, codec::Position at) {
    TRY(CheckOption(option, text, at));
    task_.options.push_back({std::string(option), std::move(text), at});
    return Ok();
  }

  Status CheckOption(std::string_view option, const std::string& text, codec::Position at) {
    if (reader_.source.checks.option) {
      Status checked = reader_.source.checks.option(option, text);
      if (!checked.ok()) {
        // A file has values; only a command line has options.
        std::string hint = checked.error().hint;
        const std::string flag = "--" + std::string(option) + " ";
        if (hint.starts_with(flag)) hint = hint.substr(flag.size());
        return codec::InvalidAt(reader_.file(), at, checked.error().what, hint);
      }
    }
    return Ok();
  }

  Status Take(const YamlFields& fields, const TaskKey& key) {
    const YamlNode* value = fields.Find(key.key);
    if (value == nullptr || codec::IsEmpty(*value)) return Ok();  // Told by Open().
    if (key.shape == TaskKey::Shape::kTextOrList && value->kind == YamlKind::kSequence) {
      auto entries = TRY(Entries(fields, key.key));
      for (auto& [text, at] : entries) reader_.Keep(Add(key.option, std::move(text), at));
      return Ok();
    }
    std::string text = TRY(fields.Text(key.key));
    return Add(key.option, std::move(text), fields.At(key.key));
  }

  Status TakeLimits(const YamlNode& node) {
    if (codec::IsEmpty(node)) return Ok();
    std::vector<std::string_view> keys = KeysOf(TaskLimits());
    YamlFields limits = TRY(reader_.Open(node, "limits", keys, keys));
    for (const TaskKey& key : TaskLimits()) reader_.Keep(Take(limits, key));
    return Ok();
  }

  Status TakeVariables(const YamlNode& node) {
    if (codec::IsEmpty(node)) return Ok();
    TRY(codec::CheckMapping(reader_.file(), node, "'env'"));
    for (const YamlEntry& entry : node.entries) {
      if (entry.key.empty() || entry.key.find('=') != std::string::npos) {
        reader_.Keep(Status(codec::InvalidAt(reader_.file(), entry.at,
                                             "'" + entry.key + "' cannot be a variable's name")));
        continue;
      }
      std::optional<std::string> text = codec::ScalarText(entry.value, codec::Blanks::kKept);
      reader_.Keep(text ? Add("env", entry.key + "=" + *text, entry.at)
                        : Status(codec::InvalidAt(reader_.file(), entry.at,
                                                  "the value of a variable must be text")));
    }
    return Ok();
  }

  Status TakePrompt(const YamlFields& fields) {
    std::string path = TRY(fields.Text("prompt_file"));
    std::string text = TRY(fields.Text("prompt"));
    if (!path.empty() && !text.empty()) {
      return fields.Invalid("prompt_file", "'prompt' and 'prompt_file' are mutually exclusive");
    }
    if (!text.empty()) {
      task_.prompt_at = fields.At("prompt");
      task_.prompt = TRY(PromptTemplate::Parse(text, reader_.file(), task_.prompt_at, false));
    }
    if (path.empty()) return Ok();
    Result<std::string> content = reader_.source.read(path);
    if (!content.ok()) return fields.Invalid("prompt_file", content.error().what);
    task_.prompt_file = path;
    task_.prompt_at = fields.At("prompt_file");
    task_.prompt = TRY(PromptTemplate::Parse(content.value(), path, {1, 1}, true));
    return Ok();
  }

  // Reads the policy file that `key` names, which must be one; empty if it names none.
  Result<std::string> ReadPolicy(const YamlFields& fields, std::string_view key,
                                 const std::string& path) {
    if (path.empty()) return path;
    Result<std::string> text = reader_.source.read(path);
    if (!text.ok()) return fields.Invalid(key, text.error().what);
    policy::ParseContext context;
    context.file = path;
    TRY(policy::ParsePolicy(text.value(), context));
    return text;
  }

  // It lies where the pull request's changes are called changes of the rules.
  Status TakePolicy(const YamlFields& fields) {
    task_.policy = TRY(fields.Text("policy"));
    const std::string& path = task_.policy;
    const bool beneath = path.starts_with(kRulesDirectory) && path.find("/..") == path.npos;
    if (!path.empty() && !beneath) {
      return fields.Invalid("policy",
                            "the policy of a task must be in " + std::string(kRulesDirectory),
                            std::string(kRulesDirectory) + task_.name + "-policy.yml");
    }
    TRY(ReadPolicy(fields, "policy", task_.policy));
    return Ok();
  }

  Status TakeChecks(const YamlNode& node) {
    if (codec::IsEmpty(node)) return Ok();
    std::vector<std::string_view> keys = {"run", "policy_file", "timeout"};
    YamlFields fields = TRY(reader_.Open(node, "checks", keys, keys));
    TaskChecks checks;
    if (fields.Find("run") == nullptr) {
      return codec::InvalidAt(reader_.file(), node.at, "'checks' must contain 'run'",
                              "run: [make test]");
    }
    checks.scripts = TRY(fields.FilledTexts("run"));
    if (checks.scripts.size() > kTaskChecksMax) {
      return fields.Invalid("run",
                            "there can be at most " + std::to_string(kTaskChecksMax) + " checks");
    }
    std::string timeout = TRY(fields.Text("timeout"));
    if (!timeout.empty()) {
      TRY(CheckOption("timeout", timeout, fields.At("timeout")));
      checks.timeout = TaskOption{"timeout", timeout, fields.At("timeout")};
    }
    checks.policy_file = TRY(fields.Text("policy_file"));
    checks.policy = TRY(ReadPolicy(fields, "policy_file", checks.policy_file));
    task_.checks = std::move(checks);
    return Ok();
  }

  Status TakePost(const YamlFields& fields) {
    auto entries = TRY(Entries(fields, "post"));
    for (const auto& [text, at] : entries) {
      auto part = reader_.Keep(ParsePost(reader_, text, entries.size() == 1, task_.post, at));
      if (part) task_.post.push_back(*std::move(part));
    }
    return Ok();
  }

  Status TakeWhen(const YamlNode& node) {
    if (codec::IsEmpty(node)) return Ok();
    std::vector<std::string_view> keys = {"events", "labels", "commands", "paths"};
    YamlFields fields = TRY(reader_.Open(node, "when", keys, keys));
    TaskWhen when;
    auto events = TRY(Entries(fields, "events"));
    for (const auto& [text, at] : events) {
      auto event = reader_.Keep(ParseTaskEvent(reader_, text, at));
      if (event) when.events.push_back(*std::move(event));
    }
    when.labels = TRY(fields.FilledTexts("labels"));
    auto commands = TRY(Entries(fields, "commands"));
    for (const auto& [text, at] : commands) {
      auto command = reader_.Keep(ParseSlashCommand(reader_, text, at));
      if (command) when.commands.push_back(*std::move(command));
    }
    auto paths = TRY(Entries(fields, "paths"));
    for (const auto& [text, at] : paths) {
      auto rule = reader_.Keep(ParsePath(reader_, text, change::PathAction::kAllow, at));
      if (rule) when.paths.push_back(*std::move(rule));
    }
    task_.when = std::move(when);
    return Ok();
  }

  ConfigReader& reader_;
  Task task_;
};

// A new comment's first line is the command, alone or with words behind it. An edited comment asks
// for nothing again.
bool Commands(const Occasion& occasion, const std::string& command) {
  if (occasion.action != "created" && occasion.action != "submitted") return false;
  std::string_view line = occasion.comment;
  line = ascii::Trimmed(line.substr(0, line.find('\n')));
  if (!line.starts_with(command)) return false;
  return line.size() == command.size() || line[command.size()] == ' ' ||
         line[command.size()] == '\t';
}

bool Covers(const change::PathRule& rule, const std::string& path) {
  const std::string folded = codec::FoldFileText(path);  // Folded as the pattern is.
  // A pattern that matches a directory covers everything beneath it.
  for (size_t end = folded.find('/');; end = folded.find('/', end + 1)) {
    if (rule.glob.Matches(std::string_view(folded).substr(0, end))) return true;
    if (end == std::string::npos) return false;
  }
}

template <typename List, typename Holds>
bool AnyOrNone(const List& list, Holds holds) {
  return list.empty() || std::any_of(list.begin(), list.end(), holds);
}

std::string EventText(const std::string& name, const std::string& action) {
  return action.empty() ? name : name + "." + action;
}

// "labels: [agent, ai], was 'bug'". What was is a stranger's text.
template <typename List, typename Text>
std::string Condition(std::string_view key, const List& wanted, Text text,
                      const std::vector<std::string>& was) {
  constexpr size_t kShownMax = 3;
  constexpr size_t kShownBytesMax = 60;
  std::string list;
  for (const auto& one : wanted) list += (list.empty() ? "" : ", ") + text(one);
  std::string there;
  for (size_t i = 0; i < std::min(was.size(), kShownMax); ++i) {
    there += (there.empty() ? "'" : ", '") + codec::NeutralLine(was[i], kShownBytesMax) + "'";
  }
  if (was.size() > kShownMax) there += " and " + std::to_string(was.size() - kShownMax) + " more";
  return std::string(key) + ": [" + list + "], was " + (there.empty() ? "none" : there);
}

// Returns the first condition that does not hold; empty if all do.
Result<std::string> Unmet(const TaskWhen& when, const Occasion& occasion) {
  const auto plain = [](const std::string& text) { return text; };
  const bool event = AnyOrNone(when.events, [&](const TaskEvent& one) {
    return one.name == occasion.event && (one.action.empty() || one.action == occasion.action);
  });
  const auto name_of = [](const TaskEvent& one) { return EventText(one.name, one.action); };
  if (!event) {
    return Condition("events", when.events, name_of, {EventText(occasion.event, occasion.action)});
  }
  const bool label = AnyOrNone(when.labels, [&](const std::string& one) {
    return std::find(occasion.labels.begin(), occasion.labels.end(), one) != occasion.labels.end();
  });
  if (!label) return Condition("labels", when.labels, plain, occasion.labels);
  const bool command =
      AnyOrNone(when.commands, [&](const std::string& one) { return Commands(occasion, one); });
  if (!command) {
    std::vector<std::string> was;
    const std::string line = occasion.comment.substr(0, occasion.comment.find('\n'));
    if (!line.empty()) was = {line};
    return Condition("commands", when.commands, plain, was);
  }
  if (when.paths.empty()) return std::string();
  const std::vector<std::string> paths = TRY(occasion.paths());
  const bool path = std::any_of(paths.begin(), paths.end(), [&](const std::string& one) {
    return AnyOrNone(when.paths, [&](const change::PathRule& rule) { return Covers(rule, one); });
  });
  if (path) return std::string();
  const auto pattern_of = [](const change::PathRule& rule) { return rule.pattern; };
  return Condition("paths", when.paths, pattern_of, paths);
}

std::string Names(const std::vector<const Task*>& tasks) {
  std::string names;
  for (const Task* task : tasks) names += (names.empty() ? "" : ", ") + task->name;
  return names;
}

}  // namespace

std::span<const TaskKey> TaskKeys() { return kTaskKeys; }
std::span<const TaskKey> TaskLimits() {
  static const std::vector<TaskKey> keys = [] {
    std::vector<TaskKey> all;
    for (const sandbox::LimitRow& row : sandbox::kLimits) {
      if (!row.task_key.empty()) all.push_back({row.task_key, row.option});
    }
    return all;
  }();
  return keys;
}
std::span<const std::string_view> TaskEvents() {
  static const std::vector<std::string_view> events = [] {
    std::vector<std::string_view> all;
    for (const forge::Facts* facts : forge::AllFacts()) {
      for (std::string_view event : facts->events) {
        if (std::find(all.begin(), all.end(), event) == all.end()) all.push_back(event);
      }
    }
    return all;
  }();
  return events;
}

std::vector<std::string_view> TaskPosts() {
  std::vector<std::string_view> posts = Listed(forge::kPostedParts);
  posts.push_back("none");
  return posts;
}

Result<std::vector<Task>> ParseTasks(const YamlNode& node, ConfigReader* reader) {
  TRY(codec::CheckMapping(reader->file(), node, "'tasks'"));
  std::vector<Task> tasks;
  TaskParser parser(reader);
  for (const YamlEntry& entry : node.entries) {
    auto task = reader->Keep(parser.Parse(entry));
    if (task) tasks.push_back(*std::move(task));
  }
  return tasks;
}

Result<const Task*> FindTask(const std::vector<Task>& tasks, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Task& task : tasks) {
    if (task.name == name) return &task;
    names.push_back(task.name);
  }
  std::string nearest = codec::NearestName(name, names);
  if (nearest.empty() && !names.empty()) nearest = std::string(names.front());
  return Error{Code::kNotFound, "the configuration has no task called '" + name + "'",
               nearest.empty() ? "" : "--task " + nearest};
}

Result<const Task*> ChooseTask(const std::vector<Task>& tasks, const Occasion& occasion) {
  ENSURE(!tasks.empty());
  const std::string first = "--task " + tasks.front().name;
  if (occasion.event.empty()) {
    return Error{Code::kUsage, "there is no event to choose one of the configuration's tasks by",
                 first};
  }
  std::vector<const Task*> found;
  std::string unmet;
  for (const Task& task : tasks) {
    if (!task.when) continue;
    const std::string condition =
        TRY(Unmet(*task.when, occasion).Context("the task '" + task.name + "'"));
    if (condition.empty()) found.push_back(&task);
    unmet += (unmet.empty() ? ": " : "; ") + ("task " + task.name) + ": " + condition;
  }
  if (found.size() == 1) return found.front();
  const std::string event = EventText(occasion.event, occasion.action);
  if (found.empty()) {
    const std::string what = "no task of the configuration is for this event (" + event + ")";
    if (unmet.empty()) return Error{Code::kSetup, what + ": none has 'when'", first};
    return Error{Code::kNothingToDo, what + unmet};
  }
  return Error{
      Code::kSetup,
      "several tasks of the configuration are for this event (" + event + "): " + Names(found),
      "--task " + found.front()->name};
}

}  // namespace run
