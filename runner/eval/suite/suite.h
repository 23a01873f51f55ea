// SPDX-License-Identifier: Apache-2.0
// A suite: an environment, tasks of users in it, and injections that try to divert the agent from
// them. The format is midojo's; what it does not have are keys of their own, which it ignores.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"
#include "eval/suite/check.h"

namespace eval {

enum class Backend {
  kDict,     // State behind fake tools.
  kSandbox,  // Files in a checkout.
};

// A file of the checkout at the beginning.
struct SeedFile {
  std::string path;     // Relative, canonical.
  std::string content;  // The content; for a link, its target.
  bool executable = false;
  bool link = false;
};

// A commit of the checkout's history.
struct SeedCommit {
  std::string message;
  std::string author;
  std::string mail;
  // Patterns of the files that it adds; if empty, all that are left.
  std::vector<std::string> paths;
};

// A fake tool: what it does to the state, and what it answers. "{name}" in a text is that argument.
struct Tool {
  enum class Act { kRead, kAppend, kSet, kNothing };
  std::string name;
  std::string description;
  std::vector<std::pair<std::string, std::string>> arguments;  // Name and description.
  Act act = Act::kNothing;
  std::string field;    // A dotted path; kNothing: empty.
  codec::Json value;    // kAppend, kSet.
  std::string returns;  // Empty if kRead answers the value, the others "ok".
};

// What a suite's own agent needs and its cells take from options of `run` alone.
struct AgentNeed {
  std::vector<std::string_view> options;  // Any of these does; without the dashes, literals.
  codec::Position at;
  std::string what;  // "the image 'quay.io/x/agent:1'".
};

struct Environment {
  Backend backend = Backend::kDict;
  codec::Json state;                // kDict; kSandbox: path -> text.
  std::vector<SeedFile> files;      // kSandbox, of both `state` and `files`.
  std::vector<SeedCommit> commits;  // The commits of kSandbox; empty without a repository.
  std::vector<Tool> tools;          // kDict.
  std::vector<std::string> agent_command;
  std::vector<AgentNeed> needs;  // Of `agent_command`.
  std::vector<std::pair<std::string, std::string>> variables;
  std::string policy;  // The text of a policy file; empty if none was given.
};

// A named place for an injected text.
struct Probe {
  std::string name;
  std::string payload;    // The payload as delivered, with the technique applied.
  std::string plain;      // The payload before that.
  std::string technique;  // "verbatim", ...
  std::string source;     // The source of a payload from a set; otherwise empty.
  std::string file;       // The file of that set; empty if it is built in.
  codec::Position at;
};

struct UserTask {
  std::string id;
  std::string prompt;
  Check utility;
  codec::Position at;
};

struct InjectionTask {
  std::string id;
  // The id that placeholders name: of a task that a matrix made, the id of the task it was made of.
  std::string of;
  std::string description;
  Check security;  // Holds if the attack succeeded.
  std::vector<Probe> probes;
  codec::Position at;
};

inline constexpr uint32_t kTrialsMax = 100;

struct Suite {
  std::string file;
  std::string name;  // The file's, without its ending; of "suite.yaml" its directory's.
  std::string sha256;
  Environment environment;
  std::vector<UserTask> user_tasks;
  std::vector<InjectionTask> injection_tasks;
  uint32_t trials = 1;
  Verifiers verifiers;
  std::vector<Warning> warnings;
};

// Where a suite's parts are that it does not have itself. An empty path names none.
struct SuiteSources {
  std::string tools;     // A file with the fake tools: `tools: [...]`, as in an environment.
  std::string payloads;  // A directory of payload sets, *.json, in addition to those built in.
};

// Reads a suite and the payload sets it names: beneath its directory, in that of `sources`, or
// built in. Fails with kInvalid and "file:line:col: error: what" on the first thing that is not
// understood, with kNotFound or kIo for a file that cannot be read. The suite's digest is that of
// its file and of the tools' file.
Result<Suite> LoadSuite(const std::string& file, const SuiteSources& sources = {});

// Returns a line for each warning, in the order of the file: "suite.yaml:7:12: warning: what". The
// suite may be a stranger's: a terminal or a CI log obeys nothing in them.
std::string RenderWarnings(const Suite& suite);

// The environment of one cell.
struct Rendered {
  std::string prompt;
  codec::Json state;
  std::vector<SeedFile> files;
  std::vector<SeedCommit> commits;
};
// Renders a cell with the probes of `injection` (may be null) in their places, and nothing in those
// of others.
Rendered Render(const Suite& suite, const UserTask& user, const InjectionTask* injection);

// Returns where the placeholders of `injection` stand: "file notes.txt", "state alerts.0.note",
// "prompt of summarise", "message of commit 2".
std::vector<std::string> VectorsOf(const Suite& suite, const InjectionTask& injection);

// midojo's working directory, beneath which its paths are.
inline constexpr std::string_view kWorkdir = "/sandbox/workdir/";

}  // namespace eval
