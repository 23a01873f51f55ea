// SPDX-License-Identifier: Apache-2.0
#include "document_blocks.h"

#include <sstream>
#include <utility>

#include "agent/dialect.h"
#include "base/sys.h"
#include "component.h"
#include "gateway/credential/provider.h"
#include "run/trusted/prompt.h"
#include "run/trusted/task.h"
#include "sandbox/limit/control.h"
#include "sandbox/limit/limit.h"

namespace tools {
namespace {

constexpr size_t kCMakeBytesMax = 1 << 20;

std::string RenderPromptVariables() {
  std::string text = "| variable | meaning | at most |\n|---|---|---|\n";
  for (const run::PromptVariable& variable : run::PromptVariables()) {
    std::string bound = "one line";
    if (variable.bytes_max > 0) bound = std::to_string(variable.bytes_max) + " bytes, fenced";
    if (variable.bytes_max >= 1024) {
      bound = std::to_string(variable.bytes_max / 1024) + " KiB, fenced";
    }
    text += "| " + Code("{{" + std::string(variable.name) + "}}") + " | " + Cell(variable.doc) +
            " | " + bound + " |\n";
  }
  return text;
}

// The names of config.md's keys that are lists of names, each a part of a table's line.
std::vector<std::pair<std::string, std::string>> ListsOfNames() {
  std::vector<std::string> streams;
  for (std::string_view name : agent::StreamNames()) {
    if (name != "plain") streams.emplace_back(name);
  }
  std::vector<std::string> limits;
  for (const run::TaskKey& limit : run::TaskLimits()) limits.emplace_back(limit.key);
  std::vector<std::string> controls;
  for (const sandbox::ControlRow& row : sandbox::kControls) {
    if (row.required) controls.emplace_back(row.text);
  }
  return {{"streams", Codes(streams, ", ")},
          {"task limits", Codes(limits, ", ")},
          {"controls", Codes(controls, ", ")}};
}

// The options of limits that neither OpenShell nor the runner for it enforces.
std::string RenderRefusedLimits() {
  std::vector<std::string> options;
  for (const sandbox::LimitRow& row : sandbox::kLimits) {
    if (!row.openshell && !row.option.empty()) options.push_back("--" + std::string(row.option));
  }
  return Wrapped(Codes(options, ", ") + ".") + "\n";
}

// The keys of each provider that takes a job's identity.
Result<std::string> RenderIdentities() {
  std::string text = "| provider | key | meaning | form, or default |\n|---|---|---|---|\n";
  for (const std::string& name : gateway::ProviderNames()) {
    gateway::Provider provider = TRY(gateway::FindProvider(name));
    if (!provider.identity) continue;
    for (const gateway::IdentityKey& key : provider.identity->keys) {
      const bool given = !key.fallback.empty();
      text += "| " + Code(name) + " | " + Code(key.name) + " | " + Cell(key.about) +
              (key.optional ? " May be left out." : "") + " | " + (given ? "default " : "") +
              Code(given ? key.fallback : key.pattern) + " |\n";
    }
  }
  return text;
}

// The table of rooms: the lines of runner/CMakeLists.txt, and the charters above them.
std::string RenderRooms(const std::string& cmake) {
  constexpr std::string_view kLine = "runner_folder(";
  std::string text = "| room | what it is | may include |\n|---|---|---|\n";
  std::string charter;
  std::istringstream lines(cmake);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) {
      charter += (charter.empty() ? "" : " ") + line.substr(2);
      continue;
    }
    if (line.starts_with(kLine)) {
      for (std::string more; line.find(')') == line.npos && std::getline(lines, more);) {
        line += more;
      }
      std::istringstream words(line.substr(kLine.size(), line.find(')') - kLine.size()));
      std::string room;
      words >> room;
      std::string others;
      for (std::string word; words >> word && word != "LIBRARIES";) {
        if (word != "FAST") others += (others.empty() ? "" : " ") + word;
      }
      text += "| " + Code(room + "/") + " | " + Cell(charter) + " | " +
              (others.empty() ? "–" : others) + " |\n";
    }
    charter.clear();
  }
  return text;
}

}  // namespace

std::string Wrapped(std::string_view text) {
  constexpr size_t kColumns = 120;
  std::string out;
  size_t column = 0;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word; column += word.size() + 1) {
    if (column > 0 && column + word.size() > kColumns) {
      out += '\n';
      column = 0;
    }
    if (column > 0) out += ' ';
    out += word;
  }
  return out;
}

// Code, each in a cell's span: "`a`, `b`".
std::string Codes(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    out += (out.empty() ? "" : std::string(between)) + Code(text);
  }
  return out;
}

Result<std::vector<DocumentBlock>> DocumentBlocks(const std::string& root) {
  const std::string cmake =
      TRY(sys::ReadFile(root + "/runner/CMakeLists.txt", kCMakeBytesMax).Context("the rooms"));
  const std::string config = "docs/reference/config.md";
  std::vector<DocumentBlock> blocks = {
      {config, "prompt variables", RenderPromptVariables()},
      {"docs/reference/openshell.md", "refused limits", RenderRefusedLimits()},
      {"docs/reference/identity.md", "identities", TRY(RenderIdentities())},
      {"docs/architecture.md", "rooms", RenderRooms(cmake)}};
  for (auto& [name, text] : ListsOfNames()) blocks.push_back({config, name, std::move(text)});
  return blocks;
}

}  // namespace tools
