// SPDX-License-Identifier: Apache-2.0
// Reads the line files of a report (requests, programs, files) one record at a time, with bounds:
// the agent shaped what is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace report {

// Calls `take` for each line of the report's events.ocsf.jsonl, in order, without its line end;
// `whole` is false, and the line empty, for one over record::kRecordLineBytesMax. No file: no
// lines. The agent shaped what is in it.
Status ForEachEventLine(const std::string& directory,
                        const std::function<void(std::string_view line, bool whole)>& take);

// Does the same for any file of the report, from that byte on, with a bound of its own for a line
// and for all that is read.
Status ForEachLine(const std::string& file, size_t line_bytes_max, size_t file_bytes_max,
                   const std::function<void(std::string_view line, bool whole)>& take,
                   int64_t from = 0);

inline constexpr char kProgramsFile[] = "programs.jsonl";

// A program that the agent, or what it started, executed.
struct StartedProgram {
  int64_t time_ms = 0;  // Since 1970.
  int64_t pid = 0;      // The process, as the sandbox numbers them.
  int64_t parent = 0;
  std::string path;  // The path of the executable, as the sandbox sees it; empty if not known.
  std::vector<std::string> arguments;
  bool cut = false;  // True if there were more arguments.
};

// Calls `take` for each program of the report's programs.jsonl, in order: what `run
// --record-programs` keeps (sandbox/call/program_record.h). Whether those are all that were
// started, with all that is to be known of them; without a file, or one with another beginning,
// they are not.
Result<bool> ForEachProgram(const std::string& directory,
                            const std::function<void(const StartedProgram&)>& take);

inline constexpr char kFilesFile[] = "files.jsonl";

// A path of the checkout that the agent created, changed or deleted.
struct LeftFile {
  std::string path;
  std::string change;                  // "created", "modified" or "deleted".
  std::optional<std::string> content;  // Nothing if it is deleted or not known.
};

// Renders a line of files.jsonl, which `run --record-files` keeps; its last line is kFilesEnd,
// where that is all.
std::string RenderLeftFile(const LeftFile& file);
inline constexpr char kFilesEnd[] = "{\"complete\": true}";

// Calls `take` for each line of the report's files.jsonl that can be read. Returns whether those
// are all the changes; fails without a file.
Result<bool> ForEachLeftFile(const std::string& directory,
                             const std::function<void(LeftFile)>& take);

}  // namespace report
