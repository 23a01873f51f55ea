// SPDX-License-Identifier: Apache-2.0
#include "advise/endpoint_edit.h"

#include <algorithm>
#include <vector>

#include "base/join.h"

namespace advise {
namespace {

using codec::Position;
using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

// The endpoint as it is written; null if it stands in no file.
const YamlNode* FindWritten(const YamlNode& root, Position at) {
  const YamlNode* policies = root.Find("network_policies");
  if (policies == nullptr || at.line == 0) return nullptr;
  for (const YamlEntry& policy : policies->entries) {
    const YamlNode* endpoints = policy.value.Find("endpoints");
    if (endpoints == nullptr) continue;
    for (const YamlNode& endpoint : endpoints->items) {
      if (endpoint.at.line == at.line && endpoint.at.column == at.column) return &endpoint;
    }
  }
  return nullptr;
}

// A rule that the file holds already, or that its preset stands for.
std::string RuleAsText(const policy::HttpRule& rule) {
  const std::string& type = rule.operation_type;
  if (!type.empty()) return "{operation_type: " + (type == "*" ? "'*'" : type) + "}";
  return "{method: '" + rule.method + "', path: '" + rule.path + "'}";
}

// Collects changes by where they are in the file as it was read, and makes them all or none.
class EndpointEditor {
 public:
  EndpointEditor(const YamlNode& node, PatchedText* text) : node_(node), text_(*text) {}

  bool Edit(const policy::Endpoint& endpoint, const EndpointAddition& addition) {
    if (!AddRules(endpoint, addition.rules)) return false;
    if (!addition.queries.empty() && !AddQueries(addition.queries)) return false;
    // Columns count characters.
    return std::none_of(changes_.begin(), changes_.end(), [&](const Change& change) {
      const std::string& line = text_[static_cast<size_t>(change.at.line) - 1];
      return std::any_of(line.begin(), line.end(), [](char c) { return (c & 0x80) != 0; });
    });
  }

  void Apply(const std::vector<std::string>& comment) {
    // Sorts from the bottom, so that places stay where they were; within a line, lines come last.
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return a.at.line != b.at.line ? a.at.line > b.at.line : a.at.column > b.at.column;
    });
    for (const Change& change : changes_) {
      size_t line = static_cast<size_t>(change.at.line) - 1;
      if (change.lines.empty()) {
        std::string now = text_[line];
        now.replace(static_cast<size_t>(change.at.column) - 1, change.removed, change.text);
        text_.Replace(line, now);
      } else {
        text_.Insert(line, change.lines);
      }
    }
    size_t top = static_cast<size_t>(changes_.back().at.line) - 1;
    const std::string& first = text_[top];
    std::string indentation = first.substr(0, std::min(first.find_first_not_of(' '), first.size()));
    std::vector<std::string> lines;
    for (const std::string& line : comment) lines.push_back(indentation + line);
    if (top == 0 || text_[top - 1] != lines.back()) text_.Insert(top, lines);
  }

 private:
  // Bytes of a line that become others; or whole lines in front of it, then the column is 0.
  struct Change {
    Position at;
    size_t removed = 0;
    std::string text;
    std::vector<std::string> lines = {};
  };

  void AddLines(Position before, const std::vector<std::string>& lines) {
    Change change{{before.line, 0}, 0, {}};
    for (const std::string& line : lines) {
      change.lines.push_back(std::string(static_cast<size_t>(before.column) - 1, ' ') + line);
    }
    changes_.push_back(std::move(change));
  }

  // Text behind the bracket at `bracket`, where further entries follow.
  void AddBehind(Position bracket, const std::string& text) {
    changes_.push_back({{bracket.line, bracket.column + 1}, 0, text + ", "});
  }

  // A plain value, or one in quotes, becomes `text`; with `key`, the key in front of it too.
  bool ReplaceValue(const YamlEntry& entry, bool key, const std::string& text) {
    const YamlNode& value = entry.value;
    Position from = key ? entry.at : value.at;
    size_t end =
        static_cast<size_t>(value.at.column) - 1 + value.text.size() + (value.quoted ? 2 : 0);
    size_t begin = static_cast<size_t>(from.column) - 1;
    if (from.line != value.at.line || end > text_[static_cast<size_t>(from.line) - 1].size()) {
      return false;
    }
    changes_.push_back({from, end - begin, text});
    return true;
  }

  const YamlEntry* FindEntry(std::string_view key) const {
    auto found = std::find_if(node_.entries.begin(), node_.entries.end(),
                              [&](const YamlEntry& entry) { return entry.key == key; });
    return found == node_.entries.end() ? nullptr : &*found;
  }

  bool AddRules(const policy::Endpoint& endpoint, const std::vector<std::string>& rules) {
    const YamlNode* list = node_.Find("rules");
    if (list == nullptr) {
      const YamlEntry* access = FindEntry("access");
      std::vector<std::string> all;
      for (const policy::HttpRule& rule : endpoint.rules) all.push_back(RuleAsText(rule));
      all.insert(all.end(), rules.begin(), rules.end());
      return access != nullptr && ReplaceValue(*access, true, "rules: [" + RuleList(all) + "]");
    }
    if (list->items.empty()) return false;
    if (text_.CharAt(list->at) == '[') {
      AddBehind(list->at, RuleList(rules));
      return true;
    }
    if (text_.CharAt(list->at) != '-') return false;
    std::vector<std::string> lines;
    for (const std::string& rule : rules) lines.push_back("- allow: " + rule);
    AddLines(list->at, lines);
    return true;
  }

  // A key that the endpoint does not have.
  bool AddKey(const std::string& text) {
    if (text_.CharAt(node_.at) == '{') {
      AddBehind(node_.at, text);
      return true;
    }
    // Inserts in front of the second key: the first one may stand behind a dash.
    if (node_.entries.size() < 2 || node_.entries[1].at.line == node_.entries[0].at.line)
      return false;
    AddLines(node_.entries[1].at, {text});
    return true;
  }

  bool AddQueries(const std::vector<std::string>& queries) {
    const YamlEntry* open = FindEntry("persisted_queries");
    bool opened = open == nullptr ? AddKey("persisted_queries: allow_registered")
                                  : open->value.text == "allow_registered" ||
                                        ReplaceValue(*open, false, "allow_registered");
    if (!opened) return false;
    const YamlNode* known = node_.Find("graphql_persisted_queries");
    if (known == nullptr) return AddKey("graphql_persisted_queries: {" + Join(queries) + "}");
    if (known->entries.empty()) return false;
    if (text_.CharAt(known->at) == '{') {
      AddBehind(known->at, Join(queries));
    } else {
      AddLines(known->entries.front().at, queries);
    }
    return true;
  }

  const YamlNode& node_;
  PatchedText& text_;
  std::vector<Change> changes_;
};

}  // namespace

bool EditEndpoint(const YamlNode& root, const policy::Endpoint& endpoint,
                  const EndpointAddition& addition, const std::vector<std::string>& comment,
                  PatchedText* text) {
  const YamlNode* node = FindWritten(root, endpoint.at);
  if (node == nullptr) return false;
  EndpointEditor editor(*node, text);
  if (!editor.Edit(endpoint, addition)) return false;
  editor.Apply(comment);
  return true;
}

}  // namespace advise
