// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/environment_parse.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "codec/data/yaml_fields.h"
#include "codec/glob/glob.h"
#include "codec/text/base64.h"
#include "eval/suite/yaml_value.h"

namespace eval {
namespace {

using codec::YamlFields;
using codec::YamlKind;
using codec::YamlNode;

// The keys of OpenShell's proto-JSON are in camel case, those of a policy file in snake case. Names
// of policies are the user's.
codec::Json SnakeCase(const codec::Json& json, bool names_are_free) {
  if (const codec::Json::Array* array = json.array()) {
    codec::Json list = codec::Json::EmptyArray();
    for (const codec::Json& one : *array) list.Push(SnakeCase(one, false));
    return list;
  }
  const codec::Json::Object* object = json.object();
  if (object == nullptr) return json;
  codec::Json out = codec::Json::EmptyObject();
  for (const auto& [name, one] : *object) {
    std::string key;
    for (char c : name) {
      bool upper = !names_are_free && c >= 'A' && c <= 'Z';
      if (upper) key += '_';
      key += upper ? static_cast<char>(c - 'A' + 'a') : c;
    }
    out.Set(key, SnakeCase(one, !names_are_free && key == "network_policies"));
  }
  return out;
}

class EnvironmentParser {
 public:
  EnvironmentParser(const std::string& file, std::vector<Warning>* warnings)
      : file_(file), warnings_(warnings) {}

  Result<Environment> Parse(const YamlNode& node, const ToolsFile* tools_file) {
    YamlFields fields = TRY(YamlFields::Open(file_, node, "'environment'",
                                             {"backend", "state", "files", "commits", "tools"}));
    TRY(ParseBackend(fields));
    bool dict = out_.backend == Backend::kDict;
    if (const YamlNode* state = fields.Find("state"); state != nullptr) {
      TRY(codec::CheckMapping(file_, *state, "'state'"));
      out_.state = TRY(JsonOf(file_, *state));
      if (!dict) TRY(TakeStateFiles(*state));
    } else if (dict) {
      return fields.Invalid("state", "'state' is missing");
    }
    for (std::string_view key : {"files", "commits", "tools"}) {
      if (fields.Find(key) != nullptr && dict != (key == "tools")) {
        return fields.Invalid(key, "'" + std::string(key) + "' does not go with this backend");
      }
    }
    const YamlNode* files = TRY(fields.List("files"));
    if (files != nullptr) {
      for (const YamlNode& item : files->items) TRY(ParseFile(item));
    }
    const YamlNode* commits = TRY(fields.List("commits"));
    if (commits != nullptr) {
      for (const YamlNode& item : commits->items) TRY(ParseCommit(item));
    }
    const YamlNode* tools = TRY(fields.List("tools"));
    if (tools != nullptr) {
      for (const YamlNode& item : tools->items) TRY(ParseTool(file_, item));
    }
    if (tools_file != nullptr) TRY(TakeToolsFile(fields, *tools_file));
    if (dict && out_.tools.empty()) {
      return fields.Invalid(
          "backend",
          "the state has no tools, so no agent could reach it: midojo's, in "
          "Python, are not run, and have to be declared",
          "tools: [...], as in examples/evaluation/weather.yaml, or --tools FILE");
    }
    return std::move(out_);
  }

 private:
  Status ParseBackend(const YamlFields& fields) {
    const YamlNode* backend = fields.Find("backend");
    if (backend == nullptr) return Ok();
    if (backend->kind == YamlKind::kScalar) return TakeBackend(fields, backend->text);
    TRY(RefuseNul(file_, *backend));
    YamlFields inside = TRY(
        YamlFields::Open(file_, *backend, "'backend'",
                         {"type", "image", "agent_command", "policy", "providers", "env_vars"}));
    std::string type = TRY(inside.RequiredText("type"));
    TRY(TakeBackend(inside, type));
    out_.agent_command = TRY(inside.FilledTexts("agent_command"));
    const std::string image = TRY(inside.Text("image"));
    if (!image.empty()) Need({"image"}, inside.At("image"), "the image '" + image + "'");
    for (const std::string& provider : TRY(inside.Texts("providers"))) {
      Need({"provider", "gateway-provider"}, inside.At("providers"),
           "OpenShell's provider '" + provider + "'");
    }
    if (const YamlNode* variables = inside.Find("env_vars"); variables != nullptr) {
      TRY(codec::CheckMapping(file_, *variables, "'env_vars'"));
      for (const codec::YamlEntry& entry : variables->entries) {
        std::optional<std::string> text = codec::ScalarText(entry.value, codec::Blanks::kKept);
        if (!text) return codec::InvalidAt(file_, entry.value.at, "a variable must be text");
        if (!ascii::IsVariableName(entry.key)) {
          return codec::InvalidAt(file_, entry.at, "'" + entry.key + "' is not a variable's name");
        }
        out_.variables.emplace_back(entry.key, *text);
      }
    }
    if (const YamlNode* policy = inside.Find("policy"); policy != nullptr) {
      TRY(codec::CheckMapping(file_, *policy, "'policy'"));
      codec::Json json = TRY(JsonOf(file_, *policy));
      codec::Json plain = SnakeCase(json, false);
      if (plain.Find("version") == nullptr) plain.Set("version", 1);
      out_.policy = codec::RenderJson(plain);
    }
    return Ok();
  }

  void Need(std::vector<std::string_view> options, codec::Position at, const std::string& what) {
    warnings_->push_back({at, what + " is not taken from a suite: --" +
                                  std::string(options.front()) + " names one"});
    out_.needs.push_back({std::move(options), at, what});
  }

  // The tools of a suite whose own are in Python.
  Status TakeToolsFile(const YamlFields& fields, const ToolsFile& file) {
    if (out_.backend != Backend::kDict) {
      return fields.Invalid("backend", "the agent has files here, and no fake tools",
                            "the same without --tools");
    }
    if (fields.Find("tools") != nullptr) {
      return fields.Invalid("tools", "the suite has tools of its own", "the same without --tools");
    }
    const YamlFields inside =
        TRY(YamlFields::Open(file.name, file.root, "a file of tools", {"tools"}));
    const YamlNode* tools = TRY(inside.List("tools"));
    if (tools == nullptr || tools->items.empty()) {
      return inside.Invalid("tools", "the file has no tools",
                            "tools: [...], as in examples/evaluation/weather.yaml");
    }
    for (const YamlNode& item : tools->items) TRY(ParseTool(file.name, item));
    return Ok();
  }

  Status TakeBackend(const YamlFields& fields, const std::string& name) {
    if (name != "dict" && name != "sandbox" && name != "openshell") {
      std::string_view key = fields.Find("type") != nullptr ? "type" : "backend";
      return fields.Invalid(key, "unknown backend '" + name + "'",
                            "one of: dict, sandbox, openshell");
    }
    out_.backend = name == "dict" ? Backend::kDict : Backend::kSandbox;
    return Ok();
  }

  // A path of the state, relative to the working directory.
  Result<std::string> PathOf(std::string_view path, codec::Position at) {
    std::string text(path);
    if (text.starts_with(kWorkdir)) text.erase(0, kWorkdir.size());
    bool wrong = text.empty() || text[0] == '/' || text.find('\0') != std::string::npos;
    std::string canonical;
    for (size_t begin = 0; !wrong && begin <= text.size();) {
      size_t end = std::min(text.find('/', begin), text.size());
      std::string part = text.substr(begin, end - begin);
      wrong = part == ".." || part == ".git";
      if (!part.empty() && part != ".") canonical += (canonical.empty() ? "" : "/") + part;
      begin = end + 1;
    }
    if (wrong || canonical.empty() || text.back() == '/') {
      return codec::InvalidAt(file_, at, "a file must be in the working directory, and not in .git",
                              "notes/report.txt");
    }
    // What stands in the way may be a link, even out of the working directory.
    for (size_t slash = canonical.find('/'); slash != std::string::npos;
         slash = canonical.find('/', slash + 1)) {
      const std::string above = canonical.substr(0, slash);
      if (paths_.contains(above)) {
        return codec::InvalidAt(file_, at, "'" + above + "' is a file, and not a directory");
      }
    }
    auto beneath = paths_.lower_bound(canonical + "/");
    if (beneath != paths_.end() && beneath->starts_with(canonical + "/")) {
      return codec::InvalidAt(file_, at, "'" + canonical + "' is a directory of another file");
    }
    if (!paths_.insert(canonical).second) {
      return codec::InvalidAt(file_, at, "the file '" + canonical + "' is there already");
    }
    return canonical;
  }

  Status TakeStateFiles(const YamlNode& state) {
    for (const codec::YamlEntry& entry : state.entries) {
      std::optional<std::string> text = codec::ScalarText(entry.value, codec::Blanks::kKept);
      if (!text) return codec::InvalidAt(file_, entry.value.at, "a file's content must be text");
      SeedFile file;
      file.path = TRY(PathOf(entry.key, entry.at));
      file.content = *text;
      out_.files.push_back(std::move(file));
    }
    return Ok();
  }

  Status ParseFile(const YamlNode& node) {
    YamlFields fields = TRY(YamlFields::Open(file_, node, "a file",
                                             {"path", "content", "base64", "link", "executable"}));
    std::string path = TRY(fields.RequiredText("path"));
    SeedFile file;
    file.path = TRY(PathOf(path, fields.At("path")));
    int contents = 0;
    for (std::string_view key : {"content", "base64", "link"}) {
      if (fields.Find(key) == nullptr) continue;
      ++contents;
      file.content = TRY(fields.Text(key));
      file.link = key == "link";
      if (file.link) TRY(RefuseNul(file_, *fields.Find(key)));
      if (key != "base64") continue;
      std::optional<std::string> bytes = codec::DecodeBase64(file.content);
      if (!bytes) return fields.Invalid(key, "not base64");
      file.content = *bytes;
    }
    if (contents != 1) {
      return fields.Invalid("path", "a file needs one of 'content', 'base64' and 'link'");
    }
    file.executable = TRY(fields.Boolean("executable", false));
    out_.files.push_back(std::move(file));
    return Ok();
  }

  Status ParseCommit(const YamlNode& node) {
    YamlFields fields =
        TRY(YamlFields::Open(file_, node, "a commit", {"message", "author", "paths"}));
    TRY(RefuseNul(file_, node));
    SeedCommit commit;
    commit.message = TRY(fields.RequiredText("message"));
    std::string author = TRY(fields.Text("author"));
    if (author.empty()) author = "Ann Author <ann@example.com>";
    const size_t open = author.find(" <");
    if (open == 0 || open == std::string::npos || !author.ends_with('>')) {
      return fields.Invalid("author", "an author is NAME <MAIL>", "Ann Author <ann@example.com>");
    }
    commit.author = author.substr(0, open);
    commit.mail = author.substr(open + 2, author.size() - open - 3);
    commit.paths = TRY(fields.FilledTexts("paths"));
    for (const std::string& pattern : commit.paths) {
      Result<codec::Glob> glob = codec::Glob::Parse(pattern, '/');
      if (!glob.ok()) return fields.Invalid("paths", glob.error().what);
      const bool any = std::any_of(out_.files.begin(), out_.files.end(), [&](const SeedFile& one) {
        return glob.value().Matches(one.path);
      });
      if (!any) return fields.Invalid("paths", "no file of the checkout matches '" + pattern + "'");
    }
    out_.commits.push_back(std::move(commit));
    return Ok();
  }

  Status ParseTool(const std::string& file, const YamlNode& node) {
    YamlFields fields = TRY(
        YamlFields::Open(file, node, "a tool",
                         {"name", "description", "arguments", "read", "append", "set", "returns"}));
    Tool tool;
    tool.name = TRY(fields.RequiredText("name"));
    if (!tools_.insert(tool.name).second) {
      return fields.Invalid("name", "the tool '" + tool.name + "' is there already");
    }
    tool.description = TRY(fields.RequiredText("description"));
    tool.returns = TRY(fields.Text("returns"));
    if (const YamlNode* arguments = fields.Find("arguments"); arguments != nullptr) {
      TRY(codec::CheckMapping(file, *arguments, "'arguments'"));
      for (const codec::YamlEntry& entry : arguments->entries) {
        std::optional<std::string> text = codec::ScalarText(entry.value);
        if (!text)
          return codec::InvalidAt(file, entry.value.at, "an argument's description must be text");
        tool.arguments.emplace_back(entry.key, *text);
      }
    }
    int acts = 0;
    for (auto [key, act] : {std::pair(std::string_view("read"), Tool::Act::kRead),
                            std::pair(std::string_view("append"), Tool::Act::kAppend),
                            std::pair(std::string_view("set"), Tool::Act::kSet)}) {
      const YamlNode* value = fields.Find(key);
      if (value == nullptr) continue;
      ++acts;
      tool.act = act;
      TRY(ParseAct(fields, key, *value, &tool));
    }
    if (acts > 1)
      return fields.Invalid("name", "a tool has at most one of 'read', 'append', 'set'");
    out_.tools.push_back(std::move(tool));
    return Ok();
  }

  Status ParseAct(const YamlFields& fields, std::string_view key, const YamlNode& value,
                  Tool* tool) const {
    if (tool->act == Tool::Act::kRead) {
      tool->field = TRY(fields.RequiredText(key));
    } else {
      YamlFields inside = TRY(YamlFields::Open(fields.file(), value, key, {"field", "value"}));
      tool->field = TRY(inside.RequiredText("field"));
      const YamlNode* what = inside.Find("value");
      if (what == nullptr) return inside.Invalid("value", "'value' is missing");
      tool->value = TRY(JsonOf(fields.file(), *what));
    }
    std::string first = tool->field.substr(0, tool->field.find('.'));
    if (first.find('{') == std::string::npos && out_.state.Find(first) == nullptr) {
      return fields.Invalid(key, "the state has no field '" + first + "'");
    }
    return Ok();
  }

  const std::string& file_;
  std::vector<Warning>* warnings_;
  Environment out_;
  std::set<std::string> paths_;
  std::set<std::string> tools_;
};

}  // namespace

Result<Environment> ParseEnvironment(const std::string& file, const YamlNode& node,
                                     const ToolsFile* tools, std::vector<Warning>* warnings) {
  return EnvironmentParser(file, warnings).Parse(node, tools);
}

}  // namespace eval
