// SPDX-License-Identifier: Apache-2.0
#include "session/command_output.h"

#include "base/sys.h"

namespace session {

Status CommandOutput::Take(std::string_view bytes) {
  if (!shown_) return sys::WriteAll(descriptor_, bytes);
  std::string lines;
  for (const std::string& line : lines_.Feed(bytes)) Add(line, &lines);
  // The next part of it is a line of its own, so that no two make a command together.
  const std::string beginning = lines_.TakeUnfinished();
  if (!beginning.empty()) Add(beginning, &lines);
  return sys::WriteAll(descriptor_, lines);
}

Status CommandOutput::Finish() {
  std::string lines;
  for (const std::string& line : lines_.Close()) Add(line, &lines);
  return sys::WriteAll(descriptor_, lines);
}

// A terminal shows what its escapes hide from a search.
void CommandOutput::Add(const std::string& line, std::string* lines) const {
  const std::string visible = codec::VisibleLine(codec::RedactTokens(line), SIZE_MAX);
  *lines += codec::WithoutCommands(codec::RedactTokens(visible), *shown_) + "\n";
}

}  // namespace session
