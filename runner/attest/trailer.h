// SPDX-License-Identifier: Apache-2.0
// The trailers of the commits that carry an agent's changes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace attest {

// Marks our commits: "MARKER/PATCH/BASE" (post/patch_delivery.h).
inline constexpr std::string_view kCommitTrailer = "Agentic-CI: ";
// Names the signed statement about the run: the SHA-256 of the bundle in hexadecimal.
inline constexpr std::string_view kStatementTrailer = "Agentic-CI-Statement: ";

// Returns the value of the last trailer `name` of a commit's message; empty if it has none.
inline std::string TrailerOf(const std::string& message, std::string_view name) {
  const std::string begin = "\n" + std::string(name);
  const size_t at = message.rfind(begin);
  if (at == std::string::npos) return {};
  std::string line = message.substr(at + begin.size());
  line.resize(std::min(line.size(), line.find('\n')));
  return line;
}

}  // namespace attest
