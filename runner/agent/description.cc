// SPDX-License-Identifier: Apache-2.0
#include "agent/description.h"

#include <algorithm>
#include <array>
#include <span>

#include "agent/dialect.h"
#include "base/ascii.h"
#include "codec/data/embedded_file.h"
#include "codec/data/yaml_fields.h"
#include "codec/text/nearest.h"

namespace agent {

std::span<const codec::EmbeddedFile> EmbeddedAgents();

namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

constexpr std::array<std::string_view, 6> kWords = {"findings", "key",   "key_name",
                                                    "base_url", "model", "api"};

struct Word {
  size_t at = std::string_view::npos;
  size_t end = 0;  // Behind its '}'.
  std::string_view name;
};

// The first "${name}" from `from` on. Of one without an end, the name is the rest of the text,
// which is nothing that is known.
Word NextWord(std::string_view text, size_t from) {
  const size_t at = text.find("${", from);
  if (at == std::string_view::npos) return {};
  const size_t close = text.find('}', at);
  if (close == std::string_view::npos) return {at, text.size(), text.substr(at)};
  return {at, close + 1, text.substr(at + 2, close - at - 2)};
}

Status CheckWords(const std::string& file, const YamlNode& node, std::string_view text,
                  const std::vector<std::string>& more = {}) {
  for (Word word = NextWord(text, 0); word.at != std::string_view::npos;
       word = NextWord(text, word.end)) {
    if (std::find(kWords.begin(), kWords.end(), word.name) != kWords.end()) continue;
    if (std::find(more.begin(), more.end(), word.name) != more.end()) continue;
    return codec::InvalidAt(file, node.at, "unknown word '${" + std::string(word.name) + "}'",
                            codec::OneOf({kWords.begin(), kWords.end()}));
  }
  return Ok();
}

// Below the home directory, and nowhere else.
bool IsHomePath(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  for (size_t from = 0; from <= path.size();) {
    const size_t slash = std::min(path.find('/', from), path.size());
    const std::string_view part = path.substr(from, slash - from);
    if (part.empty() || part == "." || part == "..") return false;
    from = slash + 1;
  }
  return path.find('\0') == std::string_view::npos;
}

Result<Pairs> ParsePairs(const YamlFields& fields, std::string_view key,
                         bool (*is_name)(std::string_view), std::string_view noun,
                         const std::vector<std::string>& words = {}) {
  Pairs pairs;
  const YamlNode* node = fields.Find(key);
  if (node == nullptr) return pairs;
  TRY(codec::CheckMapping(fields.file(), *node, key));
  for (const codec::YamlEntry& entry : node->entries) {
    if (!is_name(entry.key)) {
      return codec::InvalidAt(fields.file(), entry.at,
                              "'" + entry.key + "' is not " + std::string(noun));
    }
    if (entry.value.kind != YamlKind::kScalar) {
      return codec::InvalidAt(fields.file(), entry.value.at, "'" + entry.key + "' must be text");
    }
    TRY(CheckWords(fields.file(), entry.value, entry.value.text, words));
    pairs.emplace_back(entry.key, entry.value.text);
  }
  return pairs;
}

Result<std::vector<std::string>> ParseArguments(const YamlFields& fields, std::string_view key) {
  std::vector<std::string> arguments = TRY(fields.Texts(key));
  if (const YamlNode* list = fields.Find(key)) {
    for (const YamlNode& item : list->items) TRY(CheckWords(fields.file(), item, item.text));
  }
  return arguments;
}

Result<ModelAccess> ParseAccess(const YamlNode& node, const std::string& file) {
  YamlFields fields = TRY(YamlFields::Open(file, node, "a model",
                                           {"provider", "keys", "base_url", "base_url_from",
                                            "base_path", "needs", "api", "model", "environment"}));
  ModelAccess access;
  access.provider = TRY(fields.RequiredText("provider"));
  access.keys = TRY(fields.FilledTexts("keys"));
  access.base_url = TRY(fields.Text("base_url"));
  access.base_url_from = TRY(fields.Text("base_url_from"));
  access.base_path = TRY(fields.Text("base_path"));
  access.needs = TRY(fields.FilledTexts("needs"));
  for (const char* key : {"base_url", "base_path"}) {
    const YamlNode* address = fields.Find(key);
    if (address != nullptr) TRY(CheckWords(file, *address, address->text, access.needs));
  }
  access.api = TRY(fields.Text("api"));
  access.model = TRY(fields.Text("model"));
  access.environment = TRY(ParsePairs(fields, "environment", ascii::IsVariableName,
                                      "a valid variable name", access.needs));
  if (access.keys.empty()) {
    return fields.Invalid("keys", "'keys' must have at least one variable", "keys: [API_KEY]");
  }
  std::vector<std::string> variables = access.keys;
  variables.insert(variables.end(), access.needs.begin(), access.needs.end());
  if (!access.base_url_from.empty()) variables.push_back(access.base_url_from);
  for (const std::string& name : variables) {
    if (!ascii::IsVariableName(name)) {
      return fields.Invalid("keys", "'" + name + "' is not a valid variable name");
    }
  }
  if (access.model == "required") {
    access.model.clear();
    access.model_required = true;
  }
  return access;
}

// `npm` and `lockfile`, which go together.
Result<std::optional<Package>> ReadPackage(const YamlFields& fields, const std::string& program) {
  const std::string text = TRY(fields.Text("npm"));
  const std::string lockfile = TRY(fields.Text("lockfile"));
  if (text.empty() != lockfile.empty()) {
    return fields.Invalid(text.empty() ? "lockfile" : "npm", "'npm' and 'lockfile' go together",
                          "lockfile: .agentic-ci/my-agent/package-lock.json");
  }
  if (text.empty()) return std::optional<Package>();
  Result<Package> package = ParsePackage(text);
  if (!package.ok()) {
    return fields.Invalid("npm", package.error().what, package.error().hint);
  }
  if (program.find('/') != std::string::npos) {
    return fields.Invalid("program", "'program' must be the name of a program of the package");
  }
  package.value().lockfile = lockfile;
  return std::optional(std::move(package).value());
}

// The built-in agent that `like` names.
Result<AgentDescription> ParseLike(const YamlFields& fields) {
  const std::string name = TRY(fields.RequiredText("like"));
  Result<AgentDescription> agent = FindAgentDescription(name);
  if (agent.ok()) return agent;
  std::vector<std::string> names = AgentNames();
  return fields.Invalid("like", "no built-in agent is called '" + name + "'",
                        codec::OneOf({names.begin(), names.end()}));
}

}  // namespace

Result<AgentDescription> ParseAgent(const YamlNode& node, const std::string& file,
                                    const std::string& name) {
  std::vector<std::string_view> keys = {
      "about",         "program",         "install",
      "tried",         "stream",          "prompt",
      "arguments",     "model_arguments", "arguments_without_search",
      "model_aliases", "environment",     "files",
      "models"};
  if (name.empty()) {
    keys.emplace_back("agent");
  } else {
    keys.insert(keys.end(), {"like", "npm", "lockfile"});
  }
  YamlFields fields = TRY(YamlFields::Open(file, node, "an agent", keys));
  AgentDescription agent;
  if (fields.Find("like") != nullptr) agent = TRY(ParseLike(fields));
  agent.name = name.empty() ? TRY(fields.RequiredText("agent")) : name;
  auto given = [&](std::string_view key) { return fields.Find(key) != nullptr; };
  for (auto [key, text] :
       {std::pair("about", &agent.about), {"install", &agent.install}, {"tried", &agent.tried}}) {
    if (given(key)) *text = TRY(fields.Text(key));
  }
  if (agent.program.empty() || given("program")) {
    agent.program = TRY(fields.RequiredText("program"));
  }
  if (agent.program.find('/') != std::string::npos && agent.program.front() != '/') {
    return fields.Invalid("program", "'program' must be a name, or an absolute path");
  }
  agent.package = TRY(ReadPackage(fields, agent.program));
  const std::vector<std::string_view> streams = StreamNames();
  if (std::optional<size_t> stream = TRY(fields.Choice("stream", streams))) {
    agent.stream = streams[*stream];
  }
  if (std::optional<size_t> prompt = TRY(fields.Choice("prompt", {"stdin", "argument"}))) {
    agent.prompt_argument = *prompt == 1;
  }
  for (auto [key, list] : {std::pair("arguments", &agent.arguments),
                           {"model_arguments", &agent.model_arguments},
                           {"arguments_without_search", &agent.arguments_without_search}}) {
    if (given(key)) *list = TRY(ParseArguments(fields, key));
  }
  agent.model_aliases = TRY(fields.Boolean("model_aliases", agent.model_aliases));
  if (given("environment")) {
    agent.environment =
        TRY(ParsePairs(fields, "environment", ascii::IsVariableName, "a valid variable name"));
  }
  if (given("files")) {
    agent.files =
        TRY(ParsePairs(fields, "files", IsHomePath, "a path relative to the home directory"));
  }
  if (const YamlNode* models = TRY(fields.List("models"))) {
    agent.models.clear();
    for (const YamlNode& model : models->items) {
      agent.models.push_back(TRY(ParseAccess(model, file)));
    }
  }
  return agent;
}

namespace {

Result<AgentDescription> ParseOwnAgent(const codec::YamlEntry& entry, const std::string& file) {
  if (!IsAgentName(entry.key)) {
    return codec::InvalidAt(file, entry.at, "an agent's name must consist of a-z, 0-9 and '-'",
                            "my-agent");
  }
  const std::vector<std::string> taken = AgentNames();
  if (entry.key == "command" || std::find(taken.begin(), taken.end(), entry.key) != taken.end()) {
    return codec::InvalidAt(file, entry.at, "there is a built-in agent '" + entry.key + "'",
                            "my-" + entry.key);
  }
  return ParseAgent(entry.value, file, entry.key);
}

}  // namespace

Result<std::vector<AgentDescription>> ParseAgents(const YamlNode& node, const std::string& file,
                                                  std::vector<Error>* errors) {
  TRY(codec::CheckMapping(file, node, "'agents'"));
  std::vector<AgentDescription> agents;
  for (const codec::YamlEntry& entry : node.entries) {
    Result<AgentDescription> agent = ParseOwnAgent(entry, file);
    if (!agent.ok()) {
      if (errors == nullptr) return std::move(agent).error();
      errors->push_back(std::move(agent).error());
      agent = AgentDescription();
      agent.value().name = entry.key;
    }
    agents.push_back(std::move(agent).value());
  }
  return agents;
}

bool IsAgentName(std::string_view name) {
  constexpr size_t kBytesMax = 64;
  auto fits = [](char c) { return ascii::IsLower(c) || ascii::IsDigit(c) || c == '-'; };
  return !name.empty() && name.size() <= kBytesMax && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

std::vector<std::string> AgentNames() {
  std::vector<std::string> names;
  for (const codec::EmbeddedFile& file : EmbeddedAgents()) {
    const std::string_view name = file.path.substr(file.path.rfind('/') + 1);
    names.emplace_back(name.substr(0, name.rfind('.')));
  }
  return names;
}

Result<AgentDescription> FindAgentDescription(std::string_view name,
                                              std::span<const AgentDescription> own) {
  for (const AgentDescription& agent : own) {
    if (agent.name == name) return agent;
  }
  std::vector<std::string> names = AgentNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) {
    const codec::EmbeddedFile& file = EmbeddedAgents()[static_cast<size_t>(found - names.begin())];
    const std::string path(file.path);
    YamlNode node = TRY(codec::ParseYaml(file.text, path));
    return ParseAgent(node, path);
  }
  names.emplace_back(kAnyProgram);
  for (const AgentDescription& agent : own) names.push_back(agent.name);
  std::string nearest = codec::NearestName(name, {names.begin(), names.end()});
  const auto longer = std::find_if(names.begin(), names.end(), [&](const std::string& known) {
    return !name.empty() && known.starts_with(name);  // "claude", as its program is called.
  });
  if (nearest.empty() && longer != names.end()) nearest = *longer;
  return Error{Code::kUsage, "unknown agent \"" + std::string(name) + "\"",
               nearest.empty() ? codec::OneOf({names.begin(), names.end()}) : "--agent " + nearest};
}

Result<std::optional<AgentDescription>> DescribeAgent(std::string_view name,
                                                      std::span<const AgentDescription> own) {
  if (name == kAnyProgram) return std::optional<AgentDescription>();
  return std::optional(TRY(FindAgentDescription(name, own)));
}

std::string Expand(std::string_view text, const Words& words) {
  std::string out;
  size_t from = 0;
  for (Word word = NextWord(text, 0); word.at != std::string_view::npos;
       word = NextWord(text, word.end)) {
    out.append(text.substr(from, word.at - from));
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const auto& pair) { return pair.first == word.name; });
    if (found != words.end()) out.append(found->second);
    from = word.end;
  }
  return out.append(text.substr(from));
}

}  // namespace agent
