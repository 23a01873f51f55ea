// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/patch_file.h"

namespace eval {

// Returns `before` with the hunks of `patch`; nullopt if they do not fit, and for a binary file.
std::optional<std::string> ApplyHunks(std::string_view before, const report::PatchFile& patch);

}  // namespace eval
