// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"
#include "codec/text/neutral.h"
#include "eval/suite/environment_parse.h"
#include "eval/suite/payload_set.h"
#include "eval/suite/placeholder.h"
#include "eval/suite/suite.h"
#include "eval/suite/technique.h"
#include "eval/suite/yaml_value.h"

namespace eval {
namespace {

using codec::YamlFields;
using codec::YamlNode;

constexpr codec::YamlLimits kLimits = {.bytes_max = size_t{1} << 20, .nul = true};
constexpr uint32_t kPayloadsMax = 100000;
constexpr size_t kTasksMax = 1000;
constexpr size_t kWarningBytesMax = 4096;

std::string DirectoryOf(const std::string& file) {
  size_t slash = file.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : file.substr(0, slash);
}

std::string NameOf(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  if (name != "suite") return name;
  Result<std::string> directory = sys::RealPath(DirectoryOf(file));
  return directory.ok() ? directory.value().substr(directory.value().rfind('/') + 1) : name;
}

// A name in reports and in the names of files.
bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= 100 && id[0] != '.' && id[0] != '-' &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
             std::string_view::npos;
}

class SuiteParser {
 public:
  SuiteParser(const std::string& file, const YamlNode& root, std::vector<PayloadSet> sets)
      : file_(file), root_(root), sets_(std::move(sets)) {
    suite_.file = file;
  }

  Result<Suite> Parse(const ToolsFile* tools) {
    YamlFields fields = TRY(YamlFields::Open(
        file_, root_, "a suite",
        {"environment", "user_tasks", "injection_tasks", "trials", "matrix", "verifiers"}));
    const YamlNode* environment = fields.Find("environment");
    if (environment == nullptr) return fields.Invalid("environment", "'environment' is missing");
    suite_.environment = TRY(ParseEnvironment(file_, *environment, tools, &suite_.warnings));
    suite_.trials = TRY(fields.Number("trials", 1, 1, kTrialsMax));
    if (const YamlNode* verifiers = fields.Find("verifiers"); verifiers != nullptr) {
      suite_.verifiers = TRY(ParseVerifiers(file_, *verifiers, DirectoryOf(file_)));
    }
    const YamlNode* injections = TRY(fields.List("injection_tasks"));
    if (injections != nullptr) {
      for (const YamlNode& item : injections->items) TRY(ParseInjection(item));
    }
    const YamlNode* users = TRY(fields.List("user_tasks"));
    if (users != nullptr) {
      for (const YamlNode& item : users->items) TRY(ParseUser(item));
    }
    if (suite_.user_tasks.empty()) {
      return fields.Invalid("user_tasks", "a suite needs at least one user task");
    }
    TRY(CheckPlaceholders());
    if (const YamlNode* matrix = fields.Find("matrix"); matrix != nullptr) TRY(Multiply(*matrix));
    return std::move(suite_);
  }

 private:
  // The state that checks may look into: not that of files.
  const codec::Json* state() const {
    return suite_.environment.backend == Backend::kDict ? &suite_.environment.state : nullptr;
  }

  Result<std::string> ParseId(const YamlFields& fields, std::set<std::string>* taken) const {
    std::string id = TRY(fields.RequiredText("id"));
    if (!IsId(id)) {
      return fields.Invalid("id", "an id consists of letters, digits, '_', '-' and '.'");
    }
    if (!taken->insert(id).second) {
      return fields.Invalid("id", "the id '" + id + "' is taken already");
    }
    if (taken->size() > kTasksMax) return fields.Invalid("id", "more than 1000 tasks");
    return id;
  }

  Status ParseUser(const YamlNode& node) {
    YamlFields fields =
        TRY(YamlFields::Open(file_, node, "a user task", {"id", "prompt", "utility"}));
    UserTask task;
    task.at = fields.at();
    task.id = TRY(ParseId(fields, &user_ids_));
    task.prompt = TRY(fields.RequiredText("prompt"));
    TRY(RefuseNul(file_, *fields.Find("prompt")));
    task.utility = TRY(ParseTaskCheck(fields, "utility"));
    suite_.user_tasks.push_back(std::move(task));
    return Ok();
  }

  Result<Check> ParseTaskCheck(const YamlFields& fields, std::string_view key) {
    const YamlNode* check = fields.Find(key);
    if (check == nullptr) {
      return fields.Invalid(key, "'" + std::string(key) + "' is missing",
                            std::string(key) + ": {output_contains: TEXT}");
    }
    return ParseCheck(file_, *check, state(), &suite_.warnings, suite_.verifiers);
  }

  Status ParseInjection(const YamlNode& node) {
    YamlFields fields = TRY(YamlFields::Open(file_, node, "an injection task",
                                             {"id", "description", "security", "probes"}));
    InjectionTask task;
    task.at = fields.at();
    task.id = TRY(ParseId(fields, &injection_ids_));
    task.of = task.id;
    task.description = TRY(fields.RequiredText("description"));
    task.security = TRY(ParseTaskCheck(fields, "security"));
    const YamlNode* probes = fields.Find("probes");
    if (probes != nullptr && probes->kind != codec::YamlKind::kNull) {
      TRY(codec::CheckMapping(file_, *probes, "'probes'"));
      TRY(RefuseNul(file_, *probes));
      for (const codec::YamlEntry& entry : probes->entries) {
        Probe probe = TRY(ParseProbe(entry));
        task.probes.push_back(std::move(probe));
      }
    }
    if (task.probes.empty()) {
      suite_.warnings.push_back(
          {task.at, "'" + task.id + "' has no probe, so nothing is injected"});
    }
    suite_.injection_tasks.push_back(std::move(task));
    return Ok();
  }

  Result<Probe> ParseProbe(const codec::YamlEntry& entry) {
    Probe probe;
    probe.name = entry.key;
    probe.at = entry.at;
    std::string what = "the probe '" + entry.key + "'";
    if (entry.value.kind == codec::YamlKind::kScalar) {
      return codec::InvalidAt(file_, entry.value.at, what + " must be a mapping, not text",
                              entry.key + ": {payload: TEXT}");
    }
    YamlFields fields = TRY(
        YamlFields::Open(file_, entry.value, what, {"payload", "source", "index", "attack_type"}));
    std::string payload = TRY(fields.Text("payload"));
    probe.source = TRY(fields.Text("source"));
    if (payload.empty() == probe.source.empty()) {
      return fields.Invalid("payload", what + " needs either 'payload' or 'source'");
    }
    if (fields.Find("index") != nullptr && probe.source.empty()) {
      return fields.Invalid("index", "'index' is about a 'source'");
    }
    if (!probe.source.empty()) payload = TRY(ParseSource(fields, &probe));
    probe.technique = TRY(fields.Text("attack_type"));
    if (probe.technique.empty()) probe.technique = "verbatim";
    std::optional<std::string> worded = ApplyTechnique(probe.technique, payload);
    if (!worded) {
      std::string nearest(codec::NearestName(probe.technique, TechniqueNames()));
      return fields.Invalid("attack_type", "unknown technique '" + probe.technique + "'",
                            nearest.empty() ? codec::OneOf(TechniqueNames()) : nearest);
    }
    probe.payload = *worded;
    probe.plain = payload;
    return probe;
  }

  // Returns the set of a file, `file:PATH`, or the one with that id.
  Result<PayloadSet> FindPayloadSet(const YamlFields& fields, const std::string& source) const {
    constexpr std::string_view kFile = "file:";
    if (source.starts_with(kFile)) {
      Result<PayloadSet> set = LoadPayloadSet(DirectoryOf(file_), source.substr(kFile.size()));
      if (!set.ok()) return fields.Invalid("source", set.error().what);
      return set;
    }
    for (const PayloadSet& set : sets_) {
      if (set.id == source) return set;
    }
    return fields.Invalid("source",
                          "the payload set '" + source + "' is not built in: it must be a file",
                          "--payloads DIR, source: file:payloads.json, or one of agentic-ci eval "
                          "list --payloads");
  }

  // Sets `file` to that of the set, too.
  Result<std::string> ParseSource(const YamlFields& fields, Probe* probe) const {
    const std::string& source = probe->source;
    const PayloadSet set = TRY(FindPayloadSet(fields, source));
    probe->file = set.file;
    uint32_t index = TRY(fields.Number("index", 0, 0, kPayloadsMax));
    const std::vector<std::string>& payloads = set.payloads;
    if (index >= payloads.size()) {
      return fields.Invalid("index", "'" + source + "' has " + std::to_string(payloads.size()) +
                                         " payloads, counted from 0");
    }
    return payloads[index];
  }

  // Every placeholder has a probe, and every probe a placeholder: otherwise an attack would never
  // be delivered, and would count as resisted.
  Status CheckPlaceholders() const {
    std::vector<std::string> probes;
    for (const InjectionTask& task : suite_.injection_tasks) {
      for (const Probe& probe : task.probes) probes.push_back(task.id + ":" + probe.name);
    }
    std::vector<std::string_view> names(probes.begin(), probes.end());
    std::set<std::string> used;
    // Payloads and checks are taken as they stand.
    for (std::string_view key : {"state", "files", "commits"}) {
      const YamlNode* node = root_.Find("environment")->Find(key);
      if (node != nullptr) TRY(CheckNode(*node, names, &used));
    }
    for (const YamlNode& user : root_.Find("user_tasks")->items) {
      TRY(CheckNode(*user.Find("prompt"), names, &used));
    }
    for (const InjectionTask& task : suite_.injection_tasks) {
      for (const Probe& probe : task.probes) {
        std::string name = task.id + ":" + probe.name;
        if (used.contains(name)) continue;
        return codec::InvalidAt(file_, probe.at,
                                "the probe '" + probe.name + "' has no placeholder",
                                "write {" + name + "} into the state or a prompt");
      }
    }
    return Ok();
  }

  // Each injection task with each technique, instead of its own: "leak.verbatim".
  Status Multiply(const YamlNode& node) {
    YamlFields fields = TRY(YamlFields::Open(file_, node, "'matrix'", {"attack_type"}));
    std::vector<std::string> techniques = TRY(fields.FilledTexts("attack_type"));
    if (techniques.empty()) return fields.Invalid("attack_type", "'attack_type' is missing");
    std::vector<InjectionTask> tasks;
    for (const InjectionTask& task : suite_.injection_tasks) {
      for (const std::string& technique : techniques) {
        InjectionTask& one = tasks.emplace_back(task);
        one.id += "." + technique;
        if (!injection_ids_.insert(one.id).second) {
          return fields.Invalid("attack_type", "the id '" + one.id + "' is taken already");
        }
        for (Probe& probe : one.probes) {
          std::optional<std::string> worded = ApplyTechnique(technique, probe.plain);
          if (!worded) {
            return fields.Invalid("attack_type", "unknown technique '" + technique + "'",
                                  codec::OneOf(TechniqueNames()));
          }
          probe.technique = technique;
          probe.payload = *worded;
        }
      }
    }
    if (tasks.size() > kTasksMax) return fields.Invalid("attack_type", "more than 1000 tasks");
    suite_.injection_tasks = std::move(tasks);
    return Ok();
  }

  Status CheckNode(const YamlNode& node, const std::vector<std::string_view>& names,
                   std::set<std::string>* used) const {
    if (node.kind == codec::YamlKind::kScalar) {
      for (const std::string& name : PlaceholdersIn(node.text)) {
        used->insert(name);
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        std::string nearest(codec::NearestName(name, names));
        return codec::InvalidAt(file_, node.at, "no injection task has the probe of {" + name + "}",
                                nearest.empty() ? "" : "write {" + nearest + "}");
      }
    }
    for (const YamlNode& item : node.items) TRY(CheckNode(item, names, used));
    for (const codec::YamlEntry& entry : node.entries) TRY(CheckNode(entry.value, names, used));
    return Ok();
  }

  const std::string& file_;
  const YamlNode& root_;
  const std::vector<PayloadSet> sets_;
  Suite suite_;
  std::set<std::string> user_ids_;
  std::set<std::string> injection_ids_;
};

void FindIn(const codec::Json& tree, const std::string& path, const std::string& prefix,
            std::vector<std::string>* found) {
  if (const std::string* text = tree.string()) {
    for (const std::string& name : PlaceholdersIn(*text)) {
      if (name.starts_with(prefix)) found->push_back("state " + path);
    }
  }
  std::string below = path.empty() ? "" : path + ".";
  if (const codec::Json::Array* array = tree.array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      FindIn((*array)[i], below + std::to_string(i), prefix, found);
    }
  }
  if (const codec::Json::Object* object = tree.object()) {
    for (const auto& [name, one] : *object) FindIn(one, below + name, prefix, found);
  }
}

}  // namespace

Result<Suite> LoadSuite(const std::string& file, const SuiteSources& sources) {
  std::string text = TRY(ReadNamedFile(file, kLimits.bytes_max).Context("reading the suite"));
  YamlNode root = TRY(codec::ParseYaml(text, file, kLimits));
  std::optional<ToolsFile> tools;
  if (!sources.tools.empty()) {
    const std::string more =
        TRY(ReadNamedFile(sources.tools, kLimits.bytes_max).Context("reading the tools"));
    tools = ToolsFile{sources.tools, TRY(codec::ParseYaml(more, sources.tools, kLimits))};
    text += more;
  }
  std::vector<PayloadSet> sets = TRY(FindPayloadSets(sources.payloads));
  Suite suite = TRY(SuiteParser(file, root, std::move(sets)).Parse(tools ? &*tools : nullptr));
  suite.name = NameOf(file);
  suite.sha256 = codec::Sha256Hex(text);
  return suite;
}

std::string RenderWarnings(const Suite& suite) {
  std::vector<Warning> warnings = suite.warnings;
  std::stable_sort(warnings.begin(), warnings.end(), [](const Warning& a, const Warning& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  std::string lines;
  for (const Warning& warning : warnings) {
    const std::string line = codec::Locate(suite.file, warning.at) + ": warning: " + warning.what;
    lines += codec::NeutralLine(line, kWarningBytesMax) + "\n";
  }
  return lines;
}

Rendered Render(const Suite& suite, const UserTask& user, const InjectionTask* injection) {
  auto value = [&](const std::string& name) -> std::string {
    if (injection == nullptr) return "";
    for (const Probe& probe : injection->probes) {
      if (name == injection->of + ":" + probe.name) return probe.payload;
    }
    return "";
  };
  Rendered rendered;
  rendered.prompt = ReplacePlaceholders(user.prompt, value);
  rendered.state = ReplaceInTree(suite.environment.state, value);
  rendered.files = suite.environment.files;
  for (SeedFile& file : rendered.files) file.content = ReplacePlaceholders(file.content, value);
  rendered.commits = suite.environment.commits;
  for (SeedCommit& commit : rendered.commits) {
    commit.message = ReplacePlaceholders(commit.message, value);
  }
  return rendered;
}

std::vector<std::string> VectorsOf(const Suite& suite, const InjectionTask& injection) {
  const std::string prefix = injection.of + ":";
  std::vector<std::string> found;
  auto look = [&](std::string_view text, const std::string& where) {
    for (const std::string& name : PlaceholdersIn(text)) {
      if (name.starts_with(prefix)) found.push_back(where);
    }
  };
  for (const SeedFile& file : suite.environment.files) look(file.content, "file " + file.path);
  const std::vector<SeedCommit>& commits = suite.environment.commits;
  for (size_t i = 0; i < commits.size(); ++i) {
    look(commits[i].message, "message of commit " + std::to_string(i + 1));
  }
  if (suite.environment.backend == Backend::kDict) {
    FindIn(suite.environment.state, "", prefix, &found);
  }
  for (const UserTask& user : suite.user_tasks) look(user.prompt, "prompt of " + user.id);
  return found;
}

}  // namespace eval
