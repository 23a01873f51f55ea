// SPDX-License-Identifier: Apache-2.0
// The techniques by which a payload is put to the agent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eval {

// Returns "verbatim", "important_instructions" and "ignore_previous".
std::vector<std::string_view> TechniqueNames();

// Returns the payload as that technique words it; nullopt for an unknown one.
std::optional<std::string> ApplyTechnique(std::string_view technique, std::string_view payload);

}  // namespace eval
