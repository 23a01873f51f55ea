// SPDX-License-Identifier: Apache-2.0
// GitLab's component, as far as it is made from the table of options: its inputs with their types,
// the variables that carry them into the job, and the tables of its README.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tools {

enum class Template { kRun, kPost, kForks };

// `templates/NAME/template.yml` and README.md with their generated blocks replaced. `install` is
// install.sh, whose list of checksums is made from `checksums` (action/checksums.txt). kInvalid:
// a block is missing, or a pattern below and the parser of an option's value disagree.
Result<std::string> RenderTemplate(Template which, const std::string& file,
                                   const std::string& install, const std::string& checksums);
Result<std::string> RenderComponentReadme(const std::string& file);

// `file` with the lines between "MARK generated: NAME begin" and "... NAME end" replaced; `mark`
// starts a comment: "# " or "<!-- ". Where both comments are in one line, such as a table's, what
// is between them in that line.
Result<std::string> ReplaceBlock(const std::string& file, std::string_view mark,
                                 std::string_view name, const std::string& block);

// A YAML string in double quotes: the docs have no control characters.
std::string Quoted(std::string_view text);

// `text` in a Markdown table's cell, and the same as code.
std::string Cell(std::string_view text);
std::string Code(std::string_view text);

}  // namespace tools
