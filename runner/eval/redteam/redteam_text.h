// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/data/json.h"
#include "eval/redteam/redteam.h"

namespace redteam {

// Renders for people: a table of the categories, then everything that was not stopped with its
// reason, then what the policy's lines let an agent do.
std::string RenderRedteam(const Results& results);
// Renders for programs; docs/reference/evaluation.md names the members.
codec::Json ToJson(const Results& results);

}  // namespace redteam
