// SPDX-License-Identifier: Apache-2.0
#include "serve/script.h"

#include <utility>
#include <vector>

#include "base/ascii.h"
#include "codec/text/shell_word.h"
#include "session/shell.h"

namespace serve {
namespace {

Error Invalid(std::string what) { return {Code::kUsage, std::move(what)}; }

// What is set around it needs a shell of its own.
Result<std::string> Surround(std::string script, const codec::Json& params) {
  std::string before;
  if (const codec::Json* directory = params.Find("directory")) {
    before += "\\command cd -- " + codec::ShellWord(*directory->string()) + " || \\exit 1\n";
  }
  const codec::Json* variables = params.Find("env");
  for (const auto& [name, value] :
       variables != nullptr ? *variables->object() : codec::Json::Object()) {
    if (!ascii::IsVariableName(name)) return Invalid("env: '" + name + "' cannot name a variable");
    before += "\\export " + name + "=" + codec::ShellWord(*value.string()) + "\n";
  }
  if (!before.empty()) script = "(\n" + before + "\\eval " + codec::ShellWord(script) + "\n)";
  if (params.BooleanAt("merge")) script = "{ \\eval " + codec::ShellWord(script) + "\n} 2>&1";
  return script;
}

}  // namespace

Result<std::string> ScriptOf(const codec::Json& params) {
  const codec::Json* command = params.Find("command");
  const codec::Json* script = params.Find("script");
  if ((command != nullptr) == (script != nullptr)) {
    return Invalid("exec takes one of 'command' and 'script'");
  }
  if (script != nullptr) return Surround(*script->string(), params);
  std::vector<std::string> words;
  for (const codec::Json& word : *command->array()) words.push_back(*word.string());
  if (words.empty()) return Invalid("exec: 'command' is empty");
  return Surround(session::QuoteWords(words), params);
}

}  // namespace serve
