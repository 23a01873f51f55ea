// SPDX-License-Identifier: Apache-2.0
// "{TASK:PROBE}" in texts: where an injection's payload comes to stand.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"

namespace eval {

// Returns the placeholders in `text`, in order: "TASK:PROBE". Both parts are identifiers: a letter
// or '_', then letters, digits and '_'.
std::vector<std::string> PlaceholdersIn(std::string_view text);

// Replaces each by what `value` gives for it, once: a payload's own braces stay as they are.
std::string ReplacePlaceholders(std::string_view text,
                                const std::function<std::string(const std::string&)>& value);

// Returns the same for every text in a tree; names of members stay.
codec::Json ReplaceInTree(const codec::Json& tree,
                          const std::function<std::string(const std::string&)>& value);

}  // namespace eval
