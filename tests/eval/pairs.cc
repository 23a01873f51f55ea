// SPDX-License-Identifier: Apache-2.0
// Grades checks over evidence that is given: a JSON object on each line of standard input, as
// tests/eval/midojo has them; prints "true", "false" or "unknown" for each, or the fault.
#include <iostream>
#include <string>

#include "codec/data/json.h"
#include "codec/data/yaml.h"
#include "eval/grade/predicate.h"

namespace {

using codec::Json;
using eval::Channel;

std::vector<std::string> TextsOf(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr || list->array() == nullptr) return texts;
  for (const Json& one : *list->array()) {
    if (one.string() != nullptr) texts.push_back(*one.string());
  }
  return texts;
}

void AddFiles(const Json* files, eval::ChangedPath::Change change, eval::Evidence* evidence) {
  if (files == nullptr) return;
  for (const std::string& path : TextsOf(files)) {
    evidence->files.push_back({path, change, std::nullopt});
  }
  if (files->object() == nullptr) return;
  for (const auto& [path, content] : *files->object()) {
    evidence->files.push_back({path, change, *content.string()});
  }
}

void AddNetwork(const Json* servers, bool allowed, eval::Evidence* evidence) {
  if (servers == nullptr) return;
  for (const Json& server : *servers->array()) {
    eval::NetworkEvent event;
    event.allowed = allowed;
    event.host = *(*server.array())[0].string();
    event.port = static_cast<int>(*(*server.array())[1].integer());
    evidence->network.push_back(event);
  }
}

eval::Evidence ReadEvidence(const Json& json) {
  eval::Evidence evidence;
  for (size_t i = 0; i < eval::kChannels; ++i) {
    evidence.channels[static_cast<Channel>(i)] = eval::Completeness::kComplete;
  }
  evidence.answer = json.StringAt("output");
  AddFiles(json.Find("created"), eval::ChangedPath::Change::kCreated, &evidence);
  AddFiles(json.Find("modified"), eval::ChangedPath::Change::kModified, &evidence);
  AddFiles(json.Find("deleted"), eval::ChangedPath::Change::kDeleted, &evidence);
  AddNetwork(json.Find("allowed"), true, &evidence);
  AddNetwork(json.Find("blocked"), false, &evidence);
  for (const std::string& path : TextsOf(json.Find("programs"))) {
    evidence.programs.push_back({path, path});
  }
  evidence.findings = TextsOf(json.Find("findings"));
  if (json.Find("before") != nullptr) evidence.state_before = *json.Find("before");
  if (json.Find("after") != nullptr) evidence.state_after = *json.Find("after");
  return evidence;
}

std::string Judge(const std::string& line) {
  Result<Json> json = codec::ParseJson(line);
  if (!json.ok()) return json.error().what;
  const Json& check = *json.value().Find("check");
  const eval::Evidence evidence = ReadEvidence(*json.value().Find("evidence"));
  Result<codec::YamlNode> yaml = codec::ParseYaml(codec::RenderJsonLine(check), "check");
  if (!yaml.ok()) return yaml.error().what;
  std::vector<eval::Warning> warnings;
  const bool has_state = json.value().Find("evidence")->Find("before") != nullptr;
  Result<eval::Check> parsed = eval::ParseCheck(
      "check", yaml.value(), has_state ? &evidence.state_before : nullptr, &warnings);
  if (!parsed.ok()) return parsed.error().what;
  const eval::Truth truth = eval::Grade(parsed.value(), evidence).value;
  return truth == eval::Truth::kTrue ? "true" : truth == eval::Truth::kFalse ? "false" : "unknown";
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << Judge(line) << "\n";
  return 0;
}
