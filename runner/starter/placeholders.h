// SPDX-License-Identifier: Apache-2.0
// The words of a workflow or a pipeline that stand for something of the reader's own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace starter {

// A word that was left in a text: OWNER, COMMIT, GROUP or IMAGE. Line and column count from one.
struct Placeholder {
  std::string word;
  int line = 0;
  int column = 0;
  size_t at = 0;  // The same place, as bytes from the text's beginning.
};

// Finds those in the places where this project's documents and `config init` write them: the path
// and the commit of `agentic-ci` in `uses:` and `component:`, and a job's image. Comments have
// none. Pure.
std::vector<Placeholder> FindPlaceholders(std::string_view text);

// Returns `text` with the release `path`@`commit` ("acme/agentic-ci" and a commit) in the places of
// OWNER, GROUP and COMMIT; IMAGE stays. Pure.
std::string FillRelease(std::string text, std::string_view path, std::string_view commit);

// Returns the workflows and pipelines of the repository at `top`, sorted: paths from there, at most
// 1000. A directory that cannot be read has none.
std::vector<std::string> WorkflowFiles(const std::string& top);

}  // namespace starter
