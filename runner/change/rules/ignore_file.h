// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace change {

// The bound on one file of rules or attributes; a longer one is not asked.
inline constexpr size_t kIgnoreBytesMax = size_t{256} << 10;

// The rules of one .gitignore, as git reads them. They belong to the pull request: matching takes
// at most the length of a pattern times that of the path, twice over, whatever its stars.
class IgnoreFile {
 public:
  IgnoreFile() = default;
  explicit IgnoreFile(std::string_view text);

  // Returns what the last rule that matches says of `path`, relative to the file's directory and
  // without a `/` at its end: true if it is ignored. Returns nullopt if no rule matches.
  std::optional<bool> Decide(std::string_view path, bool directory) const;

 private:
  struct Rule {
    std::vector<std::string> segments;  // Between the slashes. With `by_name`, one.
    bool wanted = false;                // `!`
    bool directories = false;           // Only those.
    bool by_name = false;               // At any depth.
  };
  void Add(std::string_view line);

  std::vector<Rule> rules_;
};

}  // namespace change
