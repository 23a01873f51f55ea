// SPDX-License-Identifier: Apache-2.0
// The trailers of the commits that carry an agent's changes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attest {

// Marks our commits: "MARKER/PATCH/BASE" (post/patch_delivery.h).
inline constexpr std::string_view kCommitTrailer = "Agentic-CI";
// Names the signed statement about the run: the SHA-256 of the bundle in hexadecimal.
inline constexpr std::string_view kStatementTrailer = "Agentic-CI-Statement";

// Returns the value of the last line of a commit's message that begins with `name` and a colon, in
// letters of any case, without the blanks around it; nullopt if no line does.
std::optional<std::string> FindTrailer(std::string_view message, std::string_view name);

}  // namespace attest
