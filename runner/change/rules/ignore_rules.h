// SPDX-License-Identifier: Apache-2.0
// Which files git ignores, by the .gitignore files as they are at the end of a run. For the patch.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "change/rules/ignore_file.h"

namespace change {

// Gives the text of the .gitignore in `directory`, named from the top of the working tree with a
// `/` at its end ("" is the top); nullopt if git would read none there.
using ReadIgnores = std::function<std::optional<std::string>(const std::string& directory)>;

// All of a working tree's ignore rules. Each file is read once, when it is first needed.
class IgnoreRules {
 public:
  // `exclude` is the text of info/exclude.
  IgnoreRules(std::string_view exclude, ReadIgnores read);

  // Returns whether git ignores `path`, named from the top, if it is not tracked. A `/` at the end
  // says that it is a directory. Returns false for everything once that took kIgnoreSpentMax.
  bool Ignores(std::string_view path);

 private:
  bool Decide(const std::string& path, bool directory);
  const IgnoreFile& In(const std::string& directory);

  IgnoreFile exclude_;
  ReadIgnores read_;
  std::map<std::string, IgnoreFile> files_;
  std::string last_directory_;  // The one that was asked about last, with its `/`.
  bool last_ignored_ = false;
  std::chrono::steady_clock::duration spent_{};
};

// The time that matching may take in a run: long and hostile rules over many paths take longer.
// Rules that are not asked ignore nothing, so that more is captured, never less.
inline constexpr std::chrono::seconds kIgnoreSpentMax{20};

}  // namespace change
