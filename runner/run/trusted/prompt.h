// SPDX-License-Identifier: Apache-2.0
// A task's prompt: text of the trusted commit, with variables that stand for what the event says.
// docs/reference/config.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/position.h"

namespace run {

// A variable that a prompt may mention as {{name}}.
struct PromptVariable {
  std::string_view name;
  std::string_view doc;  // A sentence.
  // If 0, one line of the repository's own, inserted as it is if it is a name. Otherwise what a
  // stranger may have chosen, cut to this many bytes and fenced, however short.
  size_t bytes_max = 0;
};
std::span<const PromptVariable> PromptVariables();

// Parsed: texts and variables in turn.
class PromptTemplate {
 public:
  // Parses `text`. Fails with kInvalid, and the place, for a variable that does not exist, for "{{"
  // without "}}", and for more than kPromptBytesMax bytes. "\{{" is a literal "{{". `at` is where
  // the text begins in `file`, `exact` whether its lines and columns are those of the file from
  // there on.
  static Result<PromptTemplate> Parse(std::string_view text, const std::string& file,
                                      codec::Position at, bool exact);

  bool Uses(std::string_view variable) const;

  // Renders the prompt. `values` by variable; one that is missing or empty is shown as "(none)". A
  // stranger's text stands in a block of its own that begins and ends with `word`, 32 random hex
  // digits that its author cannot have known, and in a Markdown fence longer than any in it, with
  // invisible characters made visible; what they are is said at the top. A text that is cut says so
  // behind its block.
  std::string Render(const std::map<std::string, std::string, std::less<>>& values,
                     std::string_view word) const;

  static constexpr size_t kPromptBytesMax = 1 << 18;

 private:
  struct Part {
    std::string text;
    const PromptVariable* variable = nullptr;  // Behind `text`; null at the end.
  };
  std::vector<Part> parts_;
};

}  // namespace run
