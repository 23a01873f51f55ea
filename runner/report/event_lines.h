// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace report {

constexpr size_t kEventLineBytesMax = size_t{256} << 10;

// Calls `take` for each line of the report's events.ocsf.jsonl, in order, without its line end;
// `whole` is false, and the line empty, for one over kEventLineBytesMax. No file: no lines. The
// agent shaped what is in it.
Status ForEachEventLine(const std::string& directory,
                        const std::function<void(std::string_view line, bool whole)>& take);

}  // namespace report
