// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/task.h"

#include <catch2/catch.hpp>

#include "run/trusted/config.h"

namespace run {
namespace {

Result<std::string> ReadNamed(const std::string& path) {
  if (path == "review.md") return std::string("Review {{title}}\n");
  if (path == "wrong.md") return std::string("Review\n{{titel}}\n");
  return Error{Code::kNotFound, "there is no " + path + " at HEAD"};
}

// Stands for the table of options, which run/ does not see.
Status CheckOption(std::string_view option, std::string_view text) {
  if (option == "timeout" && text == "20x") return Error{Code::kUsage, "not a duration", "20m"};
  return Ok();
}

std::vector<std::string> Ecosystems() { return {"node", "python"}; }

Result<Config> Parse(std::string_view text) {
  return ParseConfig(text, {"config.yml", ReadNamed, {CheckOption, Ecosystems}});
}

std::vector<Task> Tasks(std::string_view text) {
  Result<Config> config = Parse(text);
  REQUIRE(config.ok());
  return config.value().tasks;
}

Occasion At(const char* event, const char* action = "") {
  Occasion occasion;
  occasion.event = event;
  occasion.action = action;
  occasion.paths = [] { return Result<std::vector<std::string>>(std::vector<std::string>{}); };
  return occasion;
}

// The name of the task for it, or the error.
std::string Chosen(const std::vector<Task>& tasks, const Occasion& occasion) {
  Result<const Task*> task = ChooseTask(tasks, occasion);
  return task.ok() ? task.value()->name : task.error().what;
}

constexpr char kTasks[] = R"(
tasks:
  review: {agent: claude-code, when: {events: [pull_request]}}
  labelled: {agent: claude-code, when: {events: [issues.labeled], labels: [ai, robot]}}
  fix: {agent: claude-code, when: {commands: [/fix]}}
  docs: {agent: claude-code, when: {events: [push], paths: ["docs/", "*.md"]}}
  manual: {agent: claude-code}
)";

}  // namespace

TEST_CASE("A task is read with its options, prompt, gates and occasions") {
  std::vector<Task> tasks = Tasks(R"(
tasks:
  review:
    agent: claude-code
    model: claude-sonnet-4-5
    provider: [anthropic, github]
    prompt_file: review.md
    limits: {timeout: 10m, max_cost: 2}
    env: {LEVEL: 3}
    gates: {paths: {deploy/: refuse}}
    post: [comment, check, status, pull-request]
    when: {events: [pull_request.opened], labels: [ai], paths: [src/]}
)");
  REQUIRE(tasks.size() == 1);
  const Task& task = tasks[0];
  std::string options;
  for (const TaskOption& one : task.options) options += one.option + "=" + one.text + ";";
  CHECK(options ==
        "agent=claude-code;model=claude-sonnet-4-5;provider=anthropic;provider=github;timeout=10m;"
        "max-cost=2;env=LEVEL=3;");
  CHECK(task.prompt->Uses("title"));
  CHECK(task.prompt_file == "review.md");
  CHECK(task.gates.paths.size() == 1);
  CHECK(task.post == std::vector<std::string>{"comment", "check", "status", "pull-request"});
  CHECK(task.when->events[0].action == "opened");
}

TEST_CASE("A task that is not understood is refused by line, with the nearest name") {
  struct Case {
    const char* task;
    const char* what;
    const char* hint;
  };
  for (const Case& row :
       {Case{"tasks: {}", "config.yml:1:8: error: 'tasks' is empty", "remove"},
        Case{"tasks: [a]", "config.yml:1:8: error: 'tasks' must be a mapping", ""},
        Case{"tasks: {a: }", "the task 'a' must be a mapping", ""},
        Case{"tasks: {Bad Name: {agent: x}}", "a task's name must consist of", "review"},
        Case{"tasks: {a: {agnet: x}}", "config.yml:1:13: error: unknown key 'agnet' in the task",
             "agent"},
        Case{"tasks: {a: {agent: }}", "'agent' is empty", "remove"},
        Case{"tasks:\n  a:\n    limits:\n      timeout: 20x\n",
             "config.yml:4:16: error: not a duration", "20m"},
        Case{"tasks: {a: {limits: {time: 20m}}}", "unknown key 'time' in limits", "timeout"},
        Case{"tasks: {a: {limits: {}}}", "'limits' is empty", "remove"},
        Case{"tasks: {a: {prompt: x, prompt_file: review.md}}", "mutually exclusive", ""},
        Case{"tasks: {a: {prompt_file: absent.md}}",
             "config.yml:1:26: error: there is no absent.md at HEAD", ""},
        Case{"tasks: {a: {prompt_file: wrong.md}}", "wrong.md:2:1: error: no prompt variable",
             "{{title}}"},
        Case{"tasks: {a: {prompt: \"{{titel}}\"}}", "config.yml:1:21: error: no prompt variable",
             "{{title}}"},
        Case{"tasks: {a: {post: [coment]}}", "'coment' cannot be posted", "comment"},
        Case{"tasks: {a: {post: [commits, branch]}}", "the changes go to one place",
             "post: [comment, pull-request]"},
        Case{"tasks: {a: {post: []}}", "'post' is empty", "remove"},
        Case{"tasks: {a: {post: [none, check]}}", "'none' excludes the others", "post: [none]"},
        Case{"tasks: {a: {when: {}}}", "'when' is empty", "remove"},
        Case{"tasks: {a: {when: {event: [push]}}}", "unknown key 'event' in when", "events"},
        Case{"tasks: {a: {when: {events: [pull_requests]}}}", "no event is called 'pull_requests'",
             "pull_request"},
        Case{"tasks: {a: {when: {events: [push.]}}}", "NAME or NAME.ACTIVITY",
             "pull_request.labeled"},
        Case{"tasks: {a: {when: {events: []}}}", "'events' is empty", "remove"},
        Case{"tasks: {a: {when: {labels: [\"\"]}}}", "an entry of 'labels' is empty", ""},
        Case{"tasks: {a: {when: {commands: [fix]}}}", "a command must begin with '/'", "/fix"},
        Case{"tasks: {a: {when: {paths: [../x]}}}", "is not a path in the checkout", ""},
        Case{"tasks: {a: {env: [A=b]}}", "'env' must be a mapping", ""},
        Case{"tasks: {a: {env: {A: [b]}}}", "must be text", ""},
        Case{"tasks: {a: {env: {A=B: c}}}", "'A=B' cannot be a variable's name", ""},
        Case{"tasks: {a: {command: make}}", "'command' must be a list", ""},
        Case{"tasks: {a: {gates: {paths: {x: deny}}}}", "must be refuse, warn or allow", ""}}) {
    INFO(row.task);
    Result<Config> config = Parse(row.task);
    REQUIRE(!config.ok());
    CHECK(config.error().code == Code::kInvalid);
    INFO(config.error().what);
    CHECK(config.error().what.find(row.what) != std::string::npos);
    CHECK(config.error().hint.find(row.hint) != std::string::npos);
  }
}

TEST_CASE("Every error of a configuration is found at once") {
  std::vector<Error> errors;
  Result<Config> config = ParseConfig(
      "limits: {max_token: 1, max_cost: free}\nmodels: []\nrequire: [memroy]\n"
      "ecosystems: [node, pyton]\ntasks:\n"
      "  a: {agnet: x, limits: {timeout: 20x, tim: 1}, prompt: \"{{titel}}\", post: [a, b]}\n"
      "  b: {when: {events: [pushh, pul_request], commands: [x], paths: [../y]}}\n"
      "  c: {gates: {paths: {x: deny, ../y: allow}}, env: {A: [b], C: 1}}\n",
      {"config.yml", ReadNamed, {CheckOption, Ecosystems}}, &errors);
  CHECK_FALSE(config.ok());
  CHECK(errors.size() == 18);
  for (const Error& error : errors) {
    CHECK(error.what.starts_with("config.yml:"));
    CHECK(error.what.find(": error: ") != std::string::npos);
  }
}

TEST_CASE("The one task for an event is chosen; none and several are an end") {
  std::vector<Task> tasks = Tasks(kTasks);
  CHECK(Chosen(tasks, At("pull_request", "opened")) == "review");
  CHECK(Chosen(tasks, At("workflow_dispatch")) ==
        "no task of the configuration is for this event (workflow_dispatch): task review: events: "
        "[pull_request], was 'workflow_dispatch'; task labelled: events: [issues.labeled], was "
        "'workflow_dispatch'; task fix: commands: [/fix], was none; task docs: events: [push], was "
        "'workflow_dispatch'");
  CHECK(ChooseTask(tasks, At("workflow_dispatch")).error().code == Code::kNothingToDo);
  CHECK(ChooseTask(Tasks("tasks: {a: {agent: pi}}"), At("push")).error().code == Code::kSetup);
  CHECK(ChooseTask(tasks, At("")).error().code == Code::kUsage);

  std::vector<Task> twice = Tasks(
      "tasks: {a: {agent: pi, when: {events: [push]}}, b: {agent: pi, when: {events: [push]}}}");
  CHECK(Chosen(twice, At("push")) ==
        "several tasks of the configuration are for this event (push): a, b");
  CHECK(ChooseTask(twice, At("push")).error().hint == "--task a");
}

TEST_CASE("Where no task is for an event, the condition that does not hold is named") {
  const auto why = [](const std::string& when, const Occasion& occasion) {
    const std::vector<Task> tasks = Tasks("tasks: {a: {agent: pi, when: {" + when + "}}}");
    const std::string text = Chosen(tasks, occasion);
    return text.substr(text.find("task a: "));
  };
  Occasion occasion = At("pull_request", "labeled");
  occasion.labels = {"bug"};
  CHECK(why("events: [pull_request.labeled], labels: [agent, ai]", occasion) ==
        "task a: labels: [agent, ai], was 'bug'");
  occasion.paths = [] {
    return Result<std::vector<std::string>>(std::vector<std::string>{"a", "b", "c", "d", "e"});
  };
  CHECK(why("paths: [src/]", occasion) == "task a: paths: [src/], was 'a', 'b', 'c' and 2 more");
  occasion.comment = "look\n" + std::string(100, 'x');
  CHECK(why("commands: [/fix]", occasion) == "task a: commands: [/fix], was 'look'");
}

TEST_CASE("A task for labels wants one of them, and its own activity") {
  std::vector<Task> tasks = Tasks(kTasks);
  Occasion occasion = At("issues", "labeled");
  CHECK(Chosen(tasks, occasion).starts_with("no task"));
  occasion.labels = {"bug", "robot"};
  CHECK(Chosen(tasks, occasion) == "labelled");
  occasion.action = "opened";
  CHECK(Chosen(tasks, occasion).starts_with("no task"));
}

TEST_CASE("A task for a command wants it at the beginning of a new comment") {
  std::vector<Task> tasks = Tasks(kTasks);
  Occasion occasion = At("issue_comment", "created");
  for (const char* comment : {"/fix", "/fix the tests", " /fix\r\nplease", "/fix\tthis"}) {
    occasion.comment = comment;
    INFO(comment);
    CHECK(Chosen(tasks, occasion) == "fix");
  }
  for (const char* comment : {"", "please /fix", "> /fix", "/fixed", "/FIX", "fix", "\n/fix"}) {
    occasion.comment = comment;
    INFO(comment);
    CHECK(Chosen(tasks, occasion).starts_with("no task"));
  }
  occasion.comment = "/fix";
  occasion.action = "edited";
  CHECK(Chosen(tasks, occasion).starts_with("no task"));
}

TEST_CASE(
    "A task for paths wants a change to one of them, and one that cannot be read is an error") {
  std::vector<Task> tasks = Tasks(kTasks);
  Occasion occasion = At("push");
  auto changes = [&](std::vector<std::string> paths) {
    occasion.paths = [paths] { return Result<std::vector<std::string>>(paths); };
    return Chosen(tasks, occasion);
  };
  CHECK(changes({"src/a.c", "docs/deep/b.txt"}) == "docs");
  CHECK(changes({"src/README.md"}) == "docs");
  CHECK(changes({"src/a.c", "old/docs/b"}) == "docs");
  CHECK(changes({"src/a.c"}).starts_with("no task"));
  CHECK(changes({}).starts_with("no task"));
  occasion.paths = []() -> Result<std::vector<std::string>> {
    return Error{Code::kNotFound, "no ref named x"};
  };
  CHECK(Chosen(tasks, occasion) == "the task 'docs': no ref named x");
}

TEST_CASE("A task is found by its name, or the nearest is named") {
  std::vector<Task> tasks = Tasks(kTasks);
  CHECK(FindTask(tasks, "manual").value()->name == "manual");
  CHECK(FindTask(tasks, "manuel").error().hint == "--task manual");
  CHECK(FindTask(tasks, "").error().code == Code::kNotFound);
  CHECK(FindTask({}, "x").error().hint.empty());
}

}  // namespace run
