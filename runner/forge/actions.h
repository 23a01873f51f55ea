// SPDX-License-Identifier: Apache-2.0
// Workflow commands of GitHub Actions (also understood by Gitea and Forgejo), rendered as text.
// Pure. `cli/` decides when and where to write them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace forge {

enum class Level { kError, kWarning, kNotice };

// One finding shown on the workflow's page and in the diff. Any bytes in the strings.
struct Annotation {
  Level level = Level::kNotice;
  std::string title;
  std::string message;
  std::string file;  // Relative to the repository; empty for no place.
  int line = 0;      // From 1; 0 for the file as a whole.
  int end_line = 0;  // 0 for `line` alone.
};

// GitHub keeps this many of each level per step and drops the rest without a word.
inline constexpr size_t kAnnotationsPerLevelMax = 10;
// GITHUB_STEP_SUMMARY: a step that writes more loses all of it.
inline constexpr size_t kStepSummaryBytesMax = 1024 * 1024;

// Renders `::error file=a.cc,line=3,title=T::message` lines, errors first, otherwise in the given
// order. If a level has more than kAnnotationsPerLevelMax, its last line says how many are not
// shown.
std::string RenderAnnotations(const std::vector<Annotation>& annotations);

// Renders `::add-mask::` lines, one per line of the secret, so that a multi-line value is masked
// whole. The caller writes it to stdout before anything else can show the secret. Empty for an
// empty secret.
std::string RenderMask(std::string_view secret);

// Renders "::group::TITLE\n" and "::endgroup::\n".
std::string RenderGroupBegin(std::string_view title);
std::string RenderGroupEnd();

// Between these two lines the runner interprets no command: for text an agent wrote. `word` is
// sys::RandomHex(), so that the text cannot end it.
std::string RenderStopCommands(std::string_view word);
std::string RenderResumeCommands(std::string_view word);

// Renders what to append to GITHUB_OUTPUT: `name<<word`, value, `word`, per output. Fails with
// kInvalid if a name is not [a-z0-9-]+; with kBug if a value contains the word.
Result<std::string> RenderOutputs(const std::vector<std::pair<std::string, std::string>>& outputs,
                                  std::string_view word);

// Renders `markdown` as it fits beside what is in the step's summary already (`bytes_there`):
// whole, or cut at a line's end with a note. Empty if nothing fits.
std::string RenderStepSummary(std::string_view markdown, size_t bytes_there);

}  // namespace forge
