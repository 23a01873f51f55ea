// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace report {

constexpr size_t kEventLineBytesMax = size_t{256} << 10;
// The gateway's own bound on its records (gateway/limits.h): nothing hides behind what is allowed.
constexpr size_t kEventFileBytesMax = size_t{512} << 20;

// Calls `take` for each line of the report's events.ocsf.jsonl, in order, without its line end;
// `whole` is false, and the line empty, for one over kEventLineBytesMax. No file: no lines. The
// agent shaped what is in it.
Status ForEachEventLine(const std::string& directory,
                        const std::function<void(std::string_view line, bool whole)>& take);

// The same for any file of the report, with a bound of its own for a line and for the file.
Status ForEachLine(const std::string& file, size_t line_bytes_max, size_t file_bytes_max,
                   const std::function<void(std::string_view line, bool whole)>& take);

}  // namespace report
